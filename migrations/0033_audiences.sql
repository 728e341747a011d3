-- +goose Up

-- What an agent must name in aud, Brand by Brand: an agent is the same for all of
-- them, and an audience is another at each Provider. No Brand learns by it whom
-- another lets in: it is read for one agent, by the agent or the operator.
CREATE VIEW agent_audiences AS
SELECT s.issuer, s.enabled, p.id AS provider_id, p.name AS provider, p.audience,
       b.id AS brand_id, b.name AS brand, b.interface_url
  FROM agent_standing s
  JOIN brands b ON b.id = s.brand_id
  JOIN providers p ON p.id = b.provider_id
 WHERE b.state <> 'closed' AND b.delegation;

GRANT SELECT ON agent_audiences TO countersign_app;

-- Whose Brands are whose, for the operator.
CREATE VIEW provider_brands AS
SELECT p.id AS provider_id, p.name, p.audience, p.shared, b.id AS brand_id, b.mode, b.state
  FROM providers p
  LEFT JOIN brands b ON b.provider_id = p.id;

GRANT SELECT ON provider_brands TO countersign_app;
