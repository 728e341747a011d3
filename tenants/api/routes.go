package api

import (
	"encoding/json"
	"net/http"
	"time"

	"countersign.dev/authority"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// route is one call, and what the OpenAPI document says of it: it is made from
// this list, so that no call is without its description.
type route struct {
	method, path string
	serve        serve
	looks        bool     // at a server that the Brand names
	says         string   // one line
	takes        any      // an example of the body; nil: none
	media        string   // of the body, where it is not JSON
	asks         []string // what the query may name, beside pages
	pages        bool     // takes limit and cursor
	status       int      // of success
	gives        any      // an example of the answer
	file         string   // the media type of the answer, where it is a file
}

func (h *Handler) routes() []route {
	const ok, later = http.StatusOK, http.StatusAccepted
	get, post, put, remove := http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	return []route{
		{method: get, path: "settings", serve: h.getSettings, says: "What the Brand sets", status: ok, gives: exampleSettings},
		{method: http.MethodPatch, path: "settings", serve: h.patchSettings, says: "Change the members that are named, and no others; that more agents may ask (agents), by itself, is only asked for (202), and so are which keys sign and when they change (signing_alg, rotation_days), by themselves", takes: map[string]any{"name": "Harbor Hotel", "token_seconds": 600}, status: ok, gives: exampleSettings},
		{method: post, path: "pause", serve: h.pause, says: "Stop: agents hear temporarily_unavailable, grants are kept", status: ok, gives: exampleSettings},
		{method: post, path: "resume", serve: h.resume, says: "Ask an owner to undo pause", status: later, gives: exampleChange},
		{method: put, path: "logo", serve: h.putLogo, says: "Set the logo: PNG, JPEG, WebP or GIF, up to 1 MiB", takes: "", media: "image/*", status: ok, gives: exampleSettings},
		{method: remove, path: "logo", serve: h.deleteLogo, says: "Take the logo away", status: ok, gives: exampleSettings},

		{method: get, path: "scopes", serve: h.listScopes, says: "What agents may be allowed, in the card's order; then what is retired", status: ok, gives: exampleScopes},
		{method: put, path: "scopes/{scope}", serve: h.putScope, says: "Add a scope at the end, or change it in its place", takes: exampleScope.scopeBody, status: ok, gives: exampleScopes},
		{method: post, path: "scopes/{scope}/retire", serve: h.retireScope, says: "Take a scope off the card; grants live on without it", status: ok, gives: exampleScopes},
		{method: post, path: "scopes/{scope}/restore", serve: h.restoreScope, says: "Ask an owner to put a retired scope back; grants that held it hold it again", status: later, gives: exampleChange},
		{method: put, path: "scope-order", serve: h.orderScopes, says: "Put the scopes in order", takes: orderBody{[]string{"bookings:read"}}, status: ok, gives: exampleScopes},

		{method: get, path: "detail-types", serve: h.listDetailTypes, says: "The types of authorization_details (RFC 9396) that agents may name beside a scope", status: ok, gives: exampleDetailTypes},
		{method: put, path: "detail-types/{type}", serve: h.putDetailType, says: "Add a type, or change all of it but its scope; what people allowed stays as it is", takes: exampleDetailType.detailTypeBody, status: ok, gives: exampleDetailTypes},
		{method: remove, path: "detail-types/{type}", serve: h.deleteDetailType, says: "Have agents name a type no more; what people allowed stays as it is", status: ok, gives: exampleDetailTypes},

		{method: get, path: "domains", serve: h.listDomains, says: "The Brand's domains, and how each stands", status: ok, gives: domainsReply{[]domainReply{exampleDomain}}},
		{method: post, path: "domains", serve: h.addDomain, says: "Ask an owner to begin the proof of a domain; then its token stands in the list", takes: hostBody{"hotel.example"}, status: later, gives: exampleChange},
		{method: post, path: "domains/{host}/check", serve: h.checkDomain, looks: true, says: "Look for the proof now", status: ok, gives: exampleDomain},
		{method: remove, path: "domains/{host}", serve: h.removeDomain, says: "Ask an owner to take a domain away", status: later, gives: exampleChange},

		{method: get, path: "interface", serve: h.getInterface, says: "Where the Brand's agent answers", status: ok, gives: exampleInterface},
		{method: put, path: "interface", serve: h.putInterface, says: "Ask an owner to move it; every grant ends then", takes: interfaceBody{Mode: "fronted", URL: "https://agents.hotel.example"}, status: later, gives: exampleChange},
		{method: post, path: "interface/check", serve: h.checkInterface, looks: true, says: "Read the Brand through its public URLs as a strict agent does", status: ok, gives: exampleLines},

		{method: get, path: "providers", serve: h.listProviders, says: "The organisation whose audience agents name, and the Brands that share it; with the one that this Brand made", status: ok, gives: exampleProviders},
		{method: put, path: "providers/own", serve: h.nameProvider, says: "Name the Provider that this Brand made, or make it; nothing moves by that, and its audience never changes. Another Brand of the same owner joins it by PUT interface", takes: providerBody{Name: "Harbor Hotels"}, status: ok, gives: exampleProviders},

		{method: get, path: "agent-endpoint", serve: h.getAgentEndpoint, says: "Where a hosted Brand's own agent is called", status: ok, gives: exampleAgentEndpoint},
		{method: put, path: "agent-endpoint", serve: h.putAgentEndpoint, says: "Ask an owner to have it called elsewhere, or with an empty url nowhere; the owner is shown the secret", takes: urlBody{exampleAgentEndpoint.URL}, status: later, gives: exampleChange},
		{method: post, path: "agent-endpoint/rotate", serve: h.rotateAgentSecret, says: "Ask an owner to replace the secret; both sign for a day", status: later, gives: exampleChange},
		{method: post, path: "agent-endpoint/check", serve: h.checkAgent, looks: true, says: "Send it a signed test call and say what came back", status: ok, gives: triedReply{OK: true, Milliseconds: 120, Text: "Hello!"}},

		{method: get, path: "connections", serve: h.listConnections, says: "How people log in, and what is tried beside it", status: ok, gives: exampleConnections},
		{method: put, path: "connections/candidate", serve: h.putCandidate, says: "Set the connection that is tried: an OpenID provider, or with kind assertion the Brand's own login page", takes: exampleDraft, status: ok, gives: exampleConnections},
		{method: post, path: "connections/{id}/check", serve: h.checkConnection, looks: true, says: "Read what the provider says of itself, or look at the Brand's own page", status: ok, gives: exampleLines},
		{method: post, path: "connections/{id}/tries", serve: h.tryLogin, looks: true, says: "Begin a test login: open url in a browser within 10 minutes, then ask what came of it", status: ok, gives: trialReply{exampleTrial, "https://login.hotel.example/authorize?…"}},
		{method: get, path: "tries/{id}", serve: h.getTrial, says: "What came of a test login: state is waiting, good, failed or over; of whoever logged in it tells which claims there were, and no value", status: ok, gives: exampleTrial},
		{method: post, path: "connections/{id}/live", serve: h.makeLive, says: "Ask an owner to let people log in through it", status: later, gives: exampleChange},
		{method: remove, path: "connections/{id}", serve: h.removeConnection, says: "Forget the candidate and its secret", status: ok, gives: exampleConnections},

		{method: get, path: "api-keys", serve: h.listAPIKeys, says: "The Brand's API keys, without their secrets", status: ok, gives: exampleAPIKeys},
		{method: post, path: "api-keys", serve: h.createAPIKey, says: "Ask an owner for a key; the owner is shown it", takes: tenants.KeyDraft{Name: "checkout", Rights: []tenants.Right{"introspect"}}, status: later, gives: exampleChange},
		{method: post, path: "api-keys/{id}/rotate", serve: h.rotateAPIKey, says: "Ask an owner to replace a key; both open for a day", status: later, gives: exampleChange},
		{method: remove, path: "api-keys/{id}", serve: h.revokeAPIKey, says: "End a key at once", status: ok, gives: exampleAPIKeys},

		{method: get, path: "members", serve: h.listMembers, says: "Who works on the Brand, and who is invited", status: ok, gives: exampleMembers},
		{method: post, path: "members", serve: h.inviteMember, says: "Ask an owner to invite somebody, as owner, security, support or viewer", takes: exampleInvitation, status: later, gives: exampleChange},
		{method: put, path: "members/{member}/role", serve: h.changeRole, says: "Ask an owner to give a member another role", takes: roleBody{tenants.Viewer}, status: later, gives: exampleChange},
		{method: remove, path: "members/{member}", serve: h.removeMember, says: "Ask an owner to end a membership", status: later, gives: exampleChange},
		{method: remove, path: "invitations/{id}", serve: h.withdrawInvitation, says: "Take an invitation back", status: ok, gives: exampleMembers},
		{method: post, path: "members/{member}/confirm", serve: h.confirmMember, says: "Ask an owner to make sure who a member is whose membership rests after a recovery", status: later, gives: exampleChange},
		{method: post, path: "members/{member}/vouch", serve: h.vouch, says: "Ask an owner to vouch for a member who lost all passkeys; the link goes to the member by mail", status: later, gives: exampleChange},
		{method: remove, path: "recoveries/{id}", serve: h.endRecovery, says: "Say no to an owner's recovery, at once", status: ok, gives: exampleMembers},
		{method: get, path: "usage", serve: h.usage, says: "What happened per day, in UTC", asks: []string{"days"}, status: ok, gives: exampleUsage},

		{method: get, path: "agents", serve: h.listAgents, says: "The agents that are allowed or denied by name", pages: true, status: ok, gives: exampleAgents},
		{method: get, path: "agents/known", serve: h.knownAgents, says: "Every agent that may be met here: who it is, what the operator and the Brand say of it, and whether it may ask now; search is in the issuer or the name", asks: []string{"search"}, pages: true, status: ok, gives: exampleKnown},
		{method: put, path: "agents", serve: h.setAgent, says: "Allow or deny an agent, or leave it to the rule", takes: agentBody{"https://agent.example", &no}, status: ok, gives: exampleAgents},

		{method: get, path: "webhooks", serve: h.listHooks, says: "Where the Brand is told of its grants, without the secrets", status: ok, gives: exampleHooks},
		{method: post, path: "webhooks", serve: h.createHook, says: "Ask an owner for an endpoint; the owner is shown its secret. No events: all of them. format is json, or set for Security Event Tokens (RFC 8417, CAEP)", takes: tenants.WebhookDraft{URL: "https://hotel.example/hooks/countersign", Events: []string{"grant.revoked"}, Format: tenants.FormatJSON}, status: later, gives: exampleChange},
		{method: post, path: "webhooks/{id}/rotate", serve: h.rotateHook, says: "Ask an owner to replace the secret; both sign for a day", status: later, gives: exampleChange},
		{method: post, path: "webhooks/{id}/disable", serve: h.disableHook, says: "Stop at once; what was still to be sent is kept for replay", status: ok, gives: exampleHooks},
		{method: post, path: "webhooks/{id}/enable", serve: h.enableHook, says: "Ask an owner to undo disable", status: later, gives: exampleChange},
		{method: post, path: "webhooks/{id}/test", serve: h.testHook, looks: true, says: "Send the endpoint a test, whatever events it wants", status: later, gives: sentReply{"abcdefghijkl", authority.EventTest}},
		{method: get, path: "webhooks/{id}/deliveries", serve: h.listDeliveries, says: "What was sent, the newest first; state is pending, delivered or dead", asks: []string{"state"}, pages: true, status: ok, gives: exampleDeliveries},
		{method: post, path: "webhooks/{id}/replay", serve: h.replay, says: "Send a delivery again with the same webhook-id, or all dead ones", takes: replayBody{Delivery: exampleID.String()}, status: ok, gives: replayedReply{1}},

		{method: get, path: "changes", serve: h.listChanges, says: "What waits for an owner, and what was decided; the newest first", pages: true, status: ok, gives: changesReply{Changes: []tenants.PendingChange{exampleChange}}},
		{method: get, path: "changes/{id}", serve: h.getChange, says: "One change", status: ok, gives: exampleChange},
		{method: remove, path: "changes/{id}", serve: h.withdrawChange, says: "Take a change back", status: ok, gives: exampleChange},

		{method: get, path: "keys", serve: h.listKeys, says: "The signing keys: next, current, retired, revoked", status: ok, gives: exampleKeys},
		{method: post, path: "keys", serve: h.rotateKey, says: "Ask an owner for a next signing key; it takes its turn by itself", status: later, gives: exampleChange},
		{method: post, path: "keys/{kid}/retire", serve: h.retireKey, says: "Ask an owner to take a next signing key back", status: later, gives: exampleChange},
		{method: post, path: "keys/{kid}/revoke", serve: h.revokeKey, says: "A signing key may be in other hands: it ends at once, without waiting for an owner, and every owner is told by mail", takes: map[string]string{"reason": "laptop stolen"}, status: ok, gives: exampleKeys},

		{method: get, path: "grants", serve: h.listGrants, says: "What people allow agents, the newest first; state is living or ended", asks: []string{"agent", "subject", "scope", "state"}, pages: true, status: ok, gives: exampleGrants},
		{method: get, path: "grants/{grant}", serve: h.showGrant, says: "One grant, with what the person was shown and answered, and its trail", status: ok, gives: exampleStory},
		{method: get, path: "grants/{grant}/receipts", serve: h.listReceipts, says: "What was done under a grant, the latest first: receipts as they were signed", pages: true, status: ok, gives: exampleReceipts},
		{method: post, path: "grants/{grant}/revoke", serve: h.endGrant, says: "End a grant; ended twice is ended", status: ok, gives: exampleGrant},
		{method: post, path: "grants/{grant}/scopes/{scope}/revoke", serve: h.endScope, says: "Take one scope away; the last one ends the grant", status: ok, gives: exampleGrant},
		{method: post, path: "grants/revoke", serve: h.endGrants, says: "End all grants of an agent, of a user, or of both", takes: whoseBody{Agent: "https://agent.example"}, status: ok, gives: revokedReply{12}},
		{method: post, path: "users/{subject}/suspend", serve: h.setSuspended(true), says: "Nothing happens in this user's name; grants are kept", status: ok, gives: suspendedReply{"guest-7", true}},
		{method: post, path: "users/{subject}/resume", serve: h.setSuspended(false), says: "Undo suspend", status: ok, gives: suspendedReply{"guest-7", false}},
		{method: post, path: "users/{subject}/erase", serve: h.eraseUser, says: "Erase a user's data for good: grants end, answers go, the trail no longer says who", status: ok, gives: authority.Erased{Grants: 1, Rows: 5, Events: 9}},
		{method: post, path: "brands", serve: h.createBrand, says: "Ask an owner for another Brand: it is the owner's who approves", takes: tenants.BrandDraft{ID: "harbor-beach", Name: "Harbor Beach", Organisation: "Harbor Ltd"}, status: later, gives: exampleChange},
		{method: post, path: "close", serve: h.close, says: "Ask an owner to close the Brand for good; id is the Brand's, once more. Until then the change can be taken back", takes: closeBody{"harbor-hotel"}, status: later, gives: exampleChange},
		{method: get, path: "export", serve: h.export, says: "Everything of the Brand as one archive, without secrets; every owner is told. Also while it is closed and not yet emptied", status: ok, file: "application/zip"},
		{method: get, path: "audit", serve: h.audit, says: "What happened, the oldest first; actor is an id, from and until are days of UTC, both included; with Accept: application/x-ndjson an export that can be verified", asks: []string{"event", "grant", "subject", "actor", "from", "until", "since", "limit"}, status: ok, gives: exampleEvents},
	}
}

// What the document shows. The test of the document holds each against the form
// of real answers.
var (
	no          = false
	exampleTime = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	exampleID   = uuid.MustParse("019ad000-0000-7000-8000-000000000000")

	exampleSettings = settingsReply{
		ID: "harbor-hotel", State: "active", Proven: true,
		Settings: tenants.Settings{
			Name: "Harbor Hotel", Colour: "#0f5c6e", SupportURL: "https://hotel.example/help", Languages: []string{"zh-Hant"},
			IdentityScheme: "paJwt", TokenSeconds: 900, GraceSeconds: 30, GrantDays: []int{7, 30, 90}, GrantDefault: 30,
			SigningAlg: "ES256", RotationDays: 90, IdleDays: 30, Agents: tenants.AgentsRegistered,
		},
	}
	exampleScope = scopeReply{
		ID: "bookings:read",
		scopeBody: scopeBody{
			Description: "See your bookings", Effect: "sees", Impact: "low",
			Texts: map[string]tenants.ScopeText{"zh-Hant": {Description: "查看您的訂房"}},
		},
	}
	exampleScopes = scopesReply{[]scopeReply{exampleScope}}

	exampleDetailType = detailTypeReply{
		Type: "stay_charge",
		detailTypeBody: detailTypeBody{
			Scope:  "extras:order",
			Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["amount","currency"],"properties":{"amount":{"type":"number","exclusiveMinimum":0},"currency":{"type":"string","pattern":"^[A-Z]{3}$"},"until":{"type":"string","format":"date"}}}`),
			Words:  "Up to {amount} {currency} in all[, until {until}]",
			Texts:  map[string]string{"zh-Hant": "合計最多 {amount} {currency}[，至 {until} 為止]"},
		},
	}
	exampleDetailTypes = detailTypesReply{[]detailTypeReply{exampleDetailType}}
	exampleDomain      = domainReply{
		Host: "hotel.example", State: "proven", Token: "countersign-proof=abc", File: "https://hotel.example/.well-known/countersign-proof",
		Record: "_countersign.hotel.example", ProvenAt: &exampleTime, CheckedAt: &exampleTime,
	}
	exampleProviders = providersReply{[]tenants.ProviderView{{
		ID: "harbor-hotel", Name: "Harbor Hotels", Audience: "urn:countersign:provider:harbor-hotel", Own: true, Present: true,
		Brands: []tenants.BrandID{"harbor-hotel", "harbor-spa"},
	}}}
	exampleInterface = tenants.Interface{
		Mode: tenants.Fronted, URL: "https://agents.hotel.example", Provider: "harbor-hotel",
		Audience: "urn:countersign:provider:harbor-hotel", Issuer: "https://agents.hotel.example/oauth",
	}
	exampleChange = tenants.PendingChange{
		ID: exampleID, Kind: tenants.ChangeInterface, AskedBy: "abcdefghijkl", Channel: "api", AskedAt: exampleTime,
		ExpiresAt: exampleTime.AddDate(0, 0, 7), State: "pending",
		Diff: json.RawMessage(`{"changed":{"mode":{"before":"hosted","after":"fronted"}},"ends_all_grants":true}`),
	}
	exampleAgentEndpoint = tenants.AgentEndpoint{URL: "https://hotel.example/agent/turn", ChangedAt: exampleTime}
	exampleLines         = linesReply{[]tenants.Line{{What: "card", At: "https://agents.hotel.example/.well-known/agent-card.json", State: "ok", Say: "answers"}}}
	exampleDraft         = tenants.ConnectionDraft{
		Kind: tenants.KindOIDC, Issuer: "https://login.hotel.example", ClientID: "countersign", Auth: tenants.AuthSecret, Secret: "from the provider's page",
		SubjectClaim: "sub", Scopes: []string{"openid", "email"},
	}
	exampleConnections = connectionsReply{
		Connections: []tenants.Connection{{
			ID: exampleID, Live: true, Kind: tenants.KindOIDC, Issuer: "https://login.hotel.example", ClientID: "countersign", Auth: tenants.AuthSecret,
			SubjectClaim: "sub", Scopes: []string{"openid", "email"}, CreatedAt: exampleTime,
		}, {
			ID: exampleID, Kind: tenants.KindAssertion, Issuer: "https://hotel.example", SubjectClaim: "sub", Scopes: []string{},
			JWKSURI: "https://hotel.example/login/jwks.json", LoginURL: "https://hotel.example/login", LoginOrigin: "https://hotel.example",
			CreatedAt: exampleTime,
		}},
		Audience:       "https://countersign.example/b/harbor-hotel/consent",
		AgentsAudience: "https://countersign.example/b/harbor-hotel/agents",
		JWKS:           "https://countersign.example/b/harbor-hotel/login/jwks.json", RedirectURI: "https://countersign.example/b/harbor-hotel/callback",
	}
	exampleAPIKeys = apiKeysReply{[]apiKeyReply{{ID: "abcdefghijkl", Name: "checkout", Rights: []tenants.Right{"introspect"}, CreatedAt: exampleTime}}}
	exampleHooks   = hooksReply{[]hookView{{
		ID: "abcdefghijkl", URL: "https://hotel.example/hooks/countersign", Events: []string{"grant.revoked"}, Format: tenants.FormatJSON, Enabled: true, CreatedAt: exampleTime,
	}}}
	exampleStatus     = http.StatusNoContent
	exampleDeliveries = deliveriesReply{Deliveries: []deliveryView{{
		ID: exampleID, Endpoint: "abcdefghijkl", Seq: 7, Event: "grant.revoked", State: "delivered", Attempts: 1,
		DueAt: exampleTime, LastAt: &exampleTime, LastStatus: &exampleStatus,
	}}}
	exampleAgents   = agentsReply{Agents: []agentReply{{Issuer: "https://agent.example", NotedAt: exampleTime}}}
	exampleKnown    = knownReply{Agents: []knownAgent{{Issuer: "https://agent.example", Name: "Aria", KeysURL: "https://agent.example/jwks.json", RegisteredAt: exampleTime, Enabled: true, Listed: &no, Host: "agent.example", AlikeAgents: []string{}}}}
	exampleKey      = keyView{KID: "Yk1…", State: "next", Alg: "ES256", Backend: "local", CreatedAt: exampleTime, ChangedAt: exampleTime, SignsFrom: &exampleTime}
	exampleKeys     = keysReply{[]keyView{exampleKey}}
	exampleGrant    = grantView{ID: exampleID, State: "living", Agent: "https://agent.example", AgentName: "Aria", Subject: "guest-7", Scopes: []string{"bookings:read"}, CreatedAt: exampleTime, ExpiresAt: exampleTime.AddDate(0, 0, 30)}
	exampleGrants   = grantsReply{Grants: []grantView{exampleGrant}}
	exampleReceipts = receiptsReply{Receipts: []receiptView{{
		Seq: 41, At: exampleTime, ContextID: "talk-1", MessageID: "m-1", JWS: "eyJ…", Claims: json.RawMessage(`{"actions":[{"tool":"bookings.list"}]}`),
	}}}
	exampleEvent  = eventView{Seq: 7, At: "2026-11-30T12:00:00.000000Z", Actor: "user", ActorID: "guest-7", Channel: "page", Event: "grant.created", Detail: json.RawMessage(`{"scopes":["bookings:read"]}`)}
	exampleEvents = eventsReply{Events: []eventView{exampleEvent}, Head: "7:Yk1…"}
	exampleStory  = grantStory{exampleGrant, []consentView{{
		ID: exampleID, Request: &exampleID, At: exampleTime, Answer: "allowed", Language: "en", Ticked: []string{"bookings:read"}, Unticked: []string{},
		Hash: "Yk1…", Record: json.RawMessage(`{"language":"en"}`),
	}}, []eventView{exampleEvent}}
)
