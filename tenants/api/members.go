package api

import (
	"net/http"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
)

type memberReply struct {
	ID    uuid.UUID    `json:"id"`
	Email string       `json:"email"`
	Name  string       `json:"name"`
	Role  tenants.Role `json:"role"`
	Since time.Time    `json:"since"`
	// Held: it rests until an owner has made sure who it is.
	Held bool `json:"held"`
}

type invitationReply struct {
	ID        uuid.UUID    `json:"id"`
	Email     string       `json:"email"`
	Role      tenants.Role `json:"role"`
	ExpiresAt time.Time    `json:"expires_at"`
}

// recoveryReply is an owner's wait to come back, of which everybody may say no.
type recoveryReply struct {
	ID     uuid.UUID `json:"id"`
	Member uuid.UUID `json:"member"`
	DueAt  time.Time `json:"due_at"`
}

type membersReply struct {
	Members     []memberReply     `json:"members"`
	Invitations []invitationReply `json:"invitations"`
	Recoveries  []recoveryReply   `json:"recoveries"`
}

func (h *Handler) listMembers(w http.ResponseWriter, r *http.Request, c caller) error {
	members, err := tenants.Members(r.Context(), h.DB, c.ID)
	if err != nil {
		return err
	}
	open, err := tenants.Invitations(r.Context(), h.DB, c.ID, h.Now())
	if err != nil {
		return err
	}
	waits, err := tenants.Recoveries(r.Context(), h.DB, c.ID)
	if err != nil {
		return err
	}
	out := membersReply{Members: []memberReply{}, Invitations: []invitationReply{}, Recoveries: []recoveryReply{}}
	for _, w := range waits { // never with its token: that is for whoever waits
		out.Recoveries = append(out.Recoveries, recoveryReply{w.ID, w.Person, w.DueAt})
	}
	for _, m := range members {
		out.Members = append(out.Members, memberReply{m.Person, m.Email, m.Name, m.Role, m.Since, m.Held})
	}
	for _, i := range open {
		out.Invitations = append(out.Invitations, invitationReply(i))
	}
	write(w, http.StatusOK, "application/json", out)
	return nil
}

type invitationBody struct {
	Email string       `json:"email"`
	Role  tenants.Role `json:"role"`
}

// inviteMember asks an owner, in whose name the letter goes out.
func (h *Handler) inviteMember(w http.ResponseWriter, r *http.Request, c caller) error {
	var b invitationBody
	if err := read(w, r, &b); err != nil {
		return err
	}
	p, err := h.Asks.AskInvitation(r.Context(), c.edit, c.ID, b.Email, b.Role, c.key, "api")
	return h.asked(w, p, err)
}

type roleBody struct {
	Role tenants.Role `json:"role"`
}

func (h *Handler) changeRole(w http.ResponseWriter, r *http.Request, c caller) error {
	var b roleBody
	if err := read(w, r, &b); err != nil {
		return err
	}
	person, err := member(r)
	if err != nil {
		return err
	}
	p, err := h.Asks.AskRole(r.Context(), c.edit, c.ID, person, b.Role, c.key, "api")
	return h.asked(w, p, err)
}

func (h *Handler) removeMember(w http.ResponseWriter, r *http.Request, c caller) error {
	person, err := member(r)
	if err != nil {
		return err
	}
	p, err := h.Asks.AskRemoval(r.Context(), c.edit, c.ID, person, c.key, "api")
	return h.asked(w, p, err)
}

func (h *Handler) withdrawInvitation(w http.ResponseWriter, r *http.Request, c caller) error {
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return tenants.ErrNoInvitation
	}
	if err := tenants.WithdrawInvitation(r.Context(), c.edit, c.ID, id); err != nil {
		return err
	}
	return h.listMembers(w, r, c)
}

// confirmMember asks an owner to make sure who it is.
func (h *Handler) confirmMember(w http.ResponseWriter, r *http.Request, c caller) error {
	person, err := member(r)
	if err != nil {
		return err
	}
	p, err := h.Asks.AskConfirmation(r.Context(), c.edit, c.ID, person, c.key, "api")
	return h.asked(w, p, err)
}

// vouch asks an owner, on whose word a member comes back.
func (h *Handler) vouch(w http.ResponseWriter, r *http.Request, c caller) error {
	person, err := member(r)
	if err != nil {
		return err
	}
	p, err := h.Asks.AskVouching(r.Context(), c.edit, c.ID, person, c.key, "api")
	return h.asked(w, p, err)
}

// endRecovery waits for nobody: saying no must be as easy as can be.
func (h *Handler) endRecovery(w http.ResponseWriter, r *http.Request, c caller) error {
	id, err := named(r, tenants.ErrNoRecovery)
	if err == nil {
		err = tenants.EndRecovery(r.Context(), c.edit, c.ID, id)
	}
	if err != nil {
		return err
	}
	return h.listMembers(w, r, c)
}

// member is the one in the path; what is no id is nobody's.
func member(r *http.Request) (uuid.UUID, error) {
	id, err := uuid.Parse(r.PathValue("member"))
	if err != nil {
		return uuid.Nil, tenants.ErrNotMember
	}
	return id, nil
}

var (
	exampleMembers = membersReply{
		Members:     []memberReply{{uuid.MustParse("019ad000-0000-7000-8000-000000000001"), "olga@hotel.example", "Olga", tenants.Owner, exampleTime, false}},
		Invitations: []invitationReply{}, Recoveries: []recoveryReply{},
	}
	exampleInvitation = invitationBody{"sami@hotel.example", tenants.Support}
)
