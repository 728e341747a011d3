package console

import (
	"slices"
	"time"

	"countersign.dev/tenants"
)

// Action is what a page lets somebody do.
type Action string

// The actions. Those of the Brand's settings are here before their pages are, so
// that whoever adds a page finds its right decided.
const (
	Visit      Action = "visit"       // sign up, sign in, follow a mailed link
	SignOut    Action = "sign-out"    // and prove oneself anew
	ChangeKeys Action = "change-keys" // one's own passkeys and codes
	SeeAccount Action = "see-account" // what opens one's account, and where it is open
	EndOwn     Action = "end-own"     // one's own sessions elsewhere
	Work       Action = "work"        // see one's Brands, make another

	See                Action = "see"
	SeeMembers         Action = "see-members"
	InviteMember       Action = "invite-member"
	WithdrawInvitation Action = "withdraw-invitation"
	ChangeMember       Action = "change-member"
	RemoveMember       Action = "remove-member"
	QuitBrand          Action = "quit-brand" // by oneself
	ConfirmMember      Action = "confirm-member"
	VouchForMember     Action = "vouch-for-member"
	CancelRecovery     Action = "cancel-recovery"
	ChangeLogin        Action = "change-login"
	ChangeInterface    Action = "change-interface"
	NameProvider       Action = "name-provider" // or make it: nothing moves by that

	ChangeSettings    Action = "change-settings"
	ChangeLogo        Action = "change-logo"
	ChangePermissions Action = "change-permissions"
	RetirePermission  Action = "retire-permission"
	RestorePermission Action = "restore-permission"
	ChangeAgentRule   Action = "change-agent-rule"
	JudgeAgent        Action = "judge-agent"
	PauseBrand        Action = "pause-brand"
	ResumeBrand       Action = "resume-brand"
	SeeGrants         Action = "see-grants"
	EndGrants         Action = "end-grants"   // those of one customer, or some that were ticked
	EndAgent          Action = "end-agent"    // all that an agent holds
	SuspendUser       Action = "suspend-user" // and let them go on
	SeeTrail          Action = "see-trail"
	ExportTrail       Action = "export-trail"
	SeeUsage          Action = "see-usage"
	SeeLeaving        Action = "see-leaving"
	ExportBrand       Action = "export-brand"
	CloseBrand        Action = "close-brand"
	EraseUser         Action = "erase-user"
	ChangeDomains     Action = "change-domains"
	LookOutside       Action = "look-outside"  // at what the Brand publishes, or its provider
	PrepareLogin      Action = "prepare-login" // a candidate, through which nobody comes in yet
	TryLogin          Action = "try-login"
	ApproveChange     Action = "approve-change"
	RejectChange      Action = "reject-change"
	SeeSigningKeys    Action = "see-signing-keys"
	ChangeSigningKeys Action = "change-signing-keys"
	SeeWebhooks       Action = "see-webhooks" // their addresses may hold a secret
	ChangeWebhooks    Action = "change-webhooks"
	SendWebhooks      Action = "send-webhooks" // a test, or once more
	SeeAPIKeys        Action = "see-api-keys"
	// Where the Brand's own agent is called; the address may hold a secret.
	SeeAgentEndpoint    Action = "see-agent-endpoint"
	ChangeAgentEndpoint Action = "change-agent-endpoint"
	ChangeAPIKeys       Action = "change-api-keys"
	ChangeAdminKeys     Action = "change-admin-keys" // make or replace a key that may itself change the Brand
	TryOut              Action = "try-out"           // as the service's own test agent
)

// who may come through a door at all.
type who int

const (
	anybody  who = iota
	signedIn     // a person
	secured      // a person whom one lost device cannot lock out
	member       // one of the Brand in the address, and secured
)

// right is one line of the rights table.
type right struct {
	who   who
	roles []tenants.Role // of members
	touch bool           // the passkey must have been touched a moment ago
	tell  bool           // every owner hears of it by mail
}

var (
	everyRole = tenants.Roles()
	ownerOnly = []tenants.Role{tenants.Owner}
	// Whoever answers a customer's call must be able to end what the caller fears.
	whoEnds = []tenants.Role{tenants.Owner, tenants.Security, tenants.Support}
	// What touches every customer at once, or takes all their ids along.
	whoGuards = []tenants.Role{tenants.Owner, tenants.Security}
)

// rights is the rights table. Whoever changes how the Brand's users log in, where
// its agents are sent, or who its members are, controls all of it (B98): that is
// the owners', under a fresh touch, and no owner can do it behind another's back.
var rights = map[Action]right{
	Visit:      {who: anybody},
	SignOut:    {who: signedIn},
	ChangeKeys: {who: signedIn, touch: true},
	SeeAccount: {who: signedIn},
	// As easy as can be.
	EndOwn: {who: signedIn},
	Work:   {who: secured},

	See:                {who: member, roles: everyRole},
	SeeMembers:         {who: member, roles: everyRole},
	InviteMember:       {who: member, roles: ownerOnly, touch: true, tell: true},
	WithdrawInvitation: {who: member, roles: ownerOnly, touch: true, tell: true},
	ChangeMember:       {who: member, roles: ownerOnly, touch: true, tell: true},
	RemoveMember:       {who: member, roles: ownerOnly, touch: true, tell: true},
	QuitBrand:          {who: member, roles: everyRole, touch: true, tell: true},
	ConfirmMember:      {who: member, roles: ownerOnly, touch: true, tell: true},
	VouchForMember:     {who: member, roles: ownerOnly, touch: true, tell: true},
	// Saying no must be as easy as can be.
	CancelRecovery:  {who: member, roles: everyRole, tell: true},
	ChangeLogin:     {who: member, roles: ownerOnly, touch: true, tell: true},
	ChangeInterface: {who: member, roles: ownerOnly, touch: true, tell: true},
	NameProvider:    {who: member, roles: ownerOnly, tell: true},

	ChangeSettings:    {who: member, roles: ownerOnly},
	ChangeLogo:        {who: member, roles: ownerOnly},
	ChangePermissions: {who: member, roles: ownerOnly},
	RetirePermission:  {who: member, roles: ownerOnly, tell: true},
	// It gives agents back what people may have forgotten that they allowed.
	RestorePermission: {who: member, roles: ownerOnly, touch: true, tell: true},
	ChangeAgentRule:   {who: member, roles: ownerOnly, touch: true, tell: true},
	JudgeAgent:        {who: member, roles: whoGuards},
	// Stopping must be as easy as can be; starting again may be what an attacker
	// waits for.
	PauseBrand:  {who: member, roles: whoGuards, tell: true},
	ResumeBrand: {who: member, roles: whoGuards, touch: true, tell: true},
	SeeGrants:   {who: member, roles: everyRole},
	// Ending is never dearer than what it ends: no touch for one customer's.
	EndGrants:   {who: member, roles: whoEnds},
	EndAgent:    {who: member, roles: whoGuards, touch: true},
	SuspendUser: {who: member, roles: whoEnds},
	SeeTrail:    {who: member, roles: everyRole},
	ExportTrail: {who: member, roles: whoGuards},
	SeeUsage:    {who: member, roles: everyRole},
	// Everything that there is goes out of the house, or the Brand ends.
	SeeLeaving:    {who: member, roles: ownerOnly},
	ExportBrand:   {who: member, roles: ownerOnly, touch: true, tell: true},
	CloseBrand:    {who: member, roles: ownerOnly, touch: true, tell: true}, // every member is told
	EraseUser:     {who: member, roles: []tenants.Role{tenants.Owner, tenants.Security}, touch: true},
	ChangeDomains: {who: member, roles: ownerOnly, touch: true, tell: true},
	LookOutside:   {who: member, roles: whoGuards},
	// The touch is for making it live: a form that holds a secret must not be lost to
	// it.
	PrepareLogin:  {who: member, roles: ownerOnly, tell: true},
	TryLogin:      {who: member, roles: ownerOnly},
	ApproveChange: {who: member, roles: ownerOnly, touch: true, tell: true},
	// As easy as can be, once more.
	RejectChange:      {who: member, roles: whoGuards, tell: true},
	SeeSigningKeys:    {who: member, roles: everyRole},
	ChangeSigningKeys: {who: member, roles: whoGuards, touch: true, tell: true},
	SeeAgentEndpoint:  {who: member, roles: whoGuards},
	// Whoever is called there hears what people say, and answers for the Brand.
	ChangeAgentEndpoint: {who: member, roles: ownerOnly, touch: true, tell: true},
	SeeWebhooks:         {who: member, roles: whoGuards},
	ChangeWebhooks:      {who: member, roles: whoGuards, touch: true, tell: true},
	SendWebhooks:        {who: member, roles: whoGuards},
	SeeAPIKeys:          {who: member, roles: everyRole},
	ChangeAPIKeys:       {who: member, roles: whoGuards, touch: true, tell: true},
	// Such a key does what is the owners'. To revoke it is ChangeAPIKeys: what stops
	// something is never dearer than the thing.
	ChangeAdminKeys: {who: member, roles: ownerOnly, touch: true, tell: true},
	TryOut:          {who: member, roles: whoEnds},
}

// fresh is how long a touch of the passkey counts.
const fresh = 5 * time.Minute

// May reports whether the role may do it.
func May(role tenants.Role, do Action) bool {
	r, known := rights[do]
	return known && r.who == member && slices.Contains(r.roles, role)
}
