package a2a

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"countersign.dev/tenants"
)

// Handler serves every Brand's Agent Card.
type Handler struct {
	brands *tenants.Directory
	log    *slog.Logger
}

// New returns a Handler.
func New(brands *tenants.Directory, log *slog.Logger) *Handler {
	return &Handler{brands: brands, log: log}
}

// Routes registers the routes of this package.
func (h *Handler) Routes(mux *http.ServeMux) {
	mux.HandleFunc("/a2a/{brand}/.well-known/agent-card.json", h.card)
}

func (h *Handler) card(w http.ResponseWriter, r *http.Request) {
	brand, err := h.brands.Brand(r.Context(), tenants.BrandID(r.PathValue("brand")))
	if errors.Is(err, tenants.ErrNoBrand) || err == nil && !brand.Exists() {
		http.NotFound(w, r)
		return
	}
	if err != nil {
		h.log.ErrorContext(r.Context(), "agent card", "error", err)
		w.Header().Set("Retry-After", "2")
		http.Error(w, "Service Unavailable", http.StatusServiceUnavailable)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		return
	}
	body, err := json.Marshal(Card(brand))
	if err != nil {
		h.log.ErrorContext(r.Context(), "agent card", "error", err)
		http.Error(w, "Internal Server Error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "public, max-age=60")
	w.Header().Set("Access-Control-Allow-Origin", "*")
	_, _ = w.Write(body)
}

// AgentCard is the A2A 1.0 card as far as PACT needs it.
type AgentCard struct {
	Name                 string                `json:"name"`
	Description          string                `json:"description"`
	Version              string                `json:"version"`
	SupportedInterfaces  []supportedInterface  `json:"supportedInterfaces"`
	Provider             *provider             `json:"provider,omitempty"`
	Capabilities         capabilities          `json:"capabilities"`
	DefaultInputModes    []string              `json:"defaultInputModes"`
	DefaultOutputModes   []string              `json:"defaultOutputModes"`
	Skills               []skill               `json:"skills"`
	SecuritySchemes      map[string]any        `json:"securitySchemes"`
	SecurityRequirements []securityRequirement `json:"securityRequirements"`
}

type supportedInterface struct {
	URL             string `json:"url"`
	ProtocolBinding string `json:"protocolBinding"`
	ProtocolVersion string `json:"protocolVersion"`
}

type provider struct {
	Organization string `json:"organization"`
	URL          string `json:"url"`
}

type capabilities struct {
	Streaming         bool `json:"streaming"`
	PushNotifications bool `json:"pushNotifications"`
	ExtendedAgentCard bool `json:"extendedAgentCard"`
}

type skill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
}

type securityRequirement struct {
	Schemes map[string]scopeList `json:"schemes"`
}

type scopeList struct {
	List []string `json:"list"`
}

// userDelegation is the name that PACT §5.1 gives the scheme.
const userDelegation = "userDelegation"

// Card describes the Brand. A Brand with delegation names both ways to come: as
// itself with the pa-jwt alone, or for a User as well (M8).
func Card(b *tenants.Brand) AgentCard {
	none := scopeList{List: []string{}}
	card := AgentCard{
		Name:        b.Name,
		Description: b.Description,
		Version:     "1.0.0",
		SupportedInterfaces: []supportedInterface{
			{URL: b.InterfaceURL, ProtocolBinding: "HTTP+JSON", ProtocolVersion: "1.0"},
		},
		DefaultInputModes:  []string{"text/plain"},
		DefaultOutputModes: []string{"text/plain"},
		Skills: []skill{{
			ID: "support", Name: "Customer support",
			Description: fmt.Sprintf("Answers questions and handles requests for customers of %s.", b.Name),
			Tags:        []string{"support"},
		}},
		SecuritySchemes: map[string]any{
			b.IdentityScheme: map[string]any{
				"httpAuthSecurityScheme": httpAuth{Scheme: "Bearer", BearerFormat: "JWT"},
			},
		},
		SecurityRequirements: []securityRequirement{{Schemes: map[string]scopeList{b.IdentityScheme: none}}},
	}
	if b.Delegation {
		card.SecuritySchemes[userDelegation] = map[string]any{
			"oauth2SecurityScheme": oauth2{
				Flows: flows{DeviceCode: deviceCode{
					DeviceAuthorizationURL: b.DeviceAuthorizationEndpoint(),
					TokenURL:               b.TokenEndpoint(),
					RefreshURL:             b.TokenEndpoint(),
					Scopes:                 b.Scopes,
				}},
				OAuth2MetadataURL: b.MetadataURL(),
			},
		}
		card.SecurityRequirements = append(card.SecurityRequirements, securityRequirement{
			Schemes: map[string]scopeList{b.IdentityScheme: none, userDelegation: none},
		})
	}
	return card
}

type httpAuth struct {
	Scheme       string `json:"scheme"`
	BearerFormat string `json:"bearerFormat"`
}

type oauth2 struct {
	Flows             flows  `json:"flows"`
	OAuth2MetadataURL string `json:"oauth2MetadataUrl"`
}

type flows struct {
	DeviceCode deviceCode `json:"deviceCode"`
}

type deviceCode struct {
	DeviceAuthorizationURL string        `json:"deviceAuthorizationUrl"`
	TokenURL               string        `json:"tokenUrl"`
	RefreshURL             string        `json:"refreshUrl"`
	Scopes                 orderedScopes `json:"scopes"`
}

// orderedScopes is a JSON object in the Brand's order: people read the list
// from the top, and a Go map would sort it (P38).
type orderedScopes []tenants.Scope

// MarshalJSON implements json.Marshaler.
func (s orderedScopes) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, scope := range s {
		if i > 0 {
			out.WriteByte(',')
		}
		id, err := json.Marshal(scope.ID)
		if err != nil {
			return nil, err
		}
		description, err := json.Marshal(scope.Description)
		if err != nil {
			return nil, err
		}
		out.Write(id)
		out.WriteByte(':')
		out.Write(description)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}
