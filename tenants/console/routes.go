package console

import (
	"fmt"
	"net/http"
)

// route is one door: where it is, what one does behind it, and what serves it.
type route struct {
	pattern string
	action  Action
	serve   func(*visit) error
}

// of is where the pages of one Brand are.
const of = "/console/b/{brand}/"

// routes lists every door of the dashboard.
func routes() []route {
	return []route{
		{"GET /console", Visit, (*visit).landing},
		{"GET /console/signup", Visit, (*visit).showSignUp},
		{"POST /console/signup", Visit, (*visit).signUp},
		{"GET /console/login", Visit, (*visit).showLogin},
		{"POST /console/login", Visit, (*visit).login},
		{"GET /console/recover", Visit, (*visit).showRecover},
		{"POST /console/recover", Visit, (*visit).recover},
		{"POST /console/recover/code", Visit, (*visit).giveCode},
		{"POST /console/recover/wait", Visit, (*visit).askToWait},
		{"GET /console/tried", Visit, (*visit).endTrial},
		{"GET /console/link", Visit, (*visit).showLink},
		{"POST /console/link", Visit, (*visit).useLink},

		{"POST /console/logout", SignOut, (*visit).logout},
		{"GET /console/touch", SignOut, (*visit).showTouch},
		{"POST /console/touch", SignOut, (*visit).touch},
		{"POST /console/link/accept", SignOut, (*visit).acceptInvitation},
		{"GET /console/keys", SignOut, (*visit).showKeys},
		{"POST /console/keys", ChangeKeys, (*visit).addKey},
		{"POST /console/keys/codes", ChangeKeys, (*visit).makeCodes},
		{"POST /console/keys/kept", ChangeKeys, (*visit).keepCodes},
		{"GET /console/account", SeeAccount, (*visit).showAccount},
		{"POST /console/account/remove", ChangeKeys, (*visit).removeKey},
		{"POST /console/account/elsewhere", EndOwn, (*visit).endElsewhere},

		{"GET /console/brands", Work, (*visit).listBrands},
		{"GET /console/new", Work, (*visit).showNewBrand},
		{"POST /console/new", Work, (*visit).createBrand},

		{"GET " + of + "{$}", See, (*visit).home},
		{"GET " + of + "members", SeeMembers, (*visit).showMembers},
		{"POST " + of + "members", InviteMember, (*visit).invite},
		{"GET " + of + "quit", QuitBrand, (*visit).showQuit},
		{"POST " + of + "quit", QuitBrand, (*visit).quit},
		{"POST " + of + "invitations/{invitation}/withdraw", WithdrawInvitation, (*visit).withdraw},
		{"GET " + of + "members/{person}", ChangeMember, (*visit).showMember},
		{"POST " + of + "members/{person}/role", ChangeMember, (*visit).changeRole},
		{"POST " + of + "members/{person}/remove", RemoveMember, (*visit).removeMember},
		{"POST " + of + "members/{person}/confirm", ConfirmMember, (*visit).confirmMember},
		{"POST " + of + "members/{person}/vouch", VouchForMember, (*visit).vouch},

		{"GET " + of + "leave", SeeLeaving, (*visit).showLeave},
		{"POST " + of + "leave/export", ExportBrand, (*visit).takeAlong},
		{"POST " + of + "leave/close", CloseBrand, (*visit).closeBrand},
		{"GET " + of + "erase", EraseUser, (*visit).showErase},
		{"POST " + of + "erase", EraseUser, (*visit).erase},

		{"POST " + of + "recoveries/{recovery}/cancel", CancelRecovery, (*visit).cancelRecovery},

		{"GET " + of + "settings", See, (*visit).showSettings},
		{"POST " + of + "settings", ChangeSettings, (*visit).changeSettings},
		{"POST " + of + "settings/logo", ChangeLogo, (*visit).setLogo},
		{"POST " + of + "settings/logo/remove", ChangeSettings, (*visit).removeLogo},
		{"GET " + of + "preview", See, (*visit).showPreview},
		{"GET " + of + "preview.css", See, (*visit).previewCSS},
		{"POST " + of + "preview", See, (*visit).previewSettings},
		{"GET " + of + "permissions", See, (*visit).showPermissions},
		{"GET " + of + "permissions/new", ChangePermissions, (*visit).showNewPermission},
		{"GET " + of + "permissions/one", See, (*visit).showPermission},
		{"POST " + of + "permissions/one", ChangePermissions, (*visit).savePermission},
		{"POST " + of + "permissions/preview", See, (*visit).previewPermission},
		{"POST " + of + "permissions/move", ChangePermissions, (*visit).movePermission},
		{"POST " + of + "permissions/retire", RetirePermission, (*visit).retirePermission},
		{"POST " + of + "permissions/restore", RestorePermission, (*visit).restorePermission},
		{"GET " + of + "agents", See, (*visit).showAgents},
		{"POST " + of + "agents/rule", ChangeAgentRule, (*visit).changeAgentRule},
		{"GET " + of + "agents/one", See, (*visit).showAgent},
		{"POST " + of + "agents/judge", JudgeAgent, (*visit).judgeAgent},
		{"GET " + of + "pause", See, (*visit).showPause},
		{"POST " + of + "pause", PauseBrand, (*visit).pauseBrand},
		{"POST " + of + "resume", ResumeBrand, (*visit).resumeBrand},
		{"GET " + of + "grants", SeeGrants, (*visit).showGrants},
		{"GET " + of + "grants/{grant}", SeeGrants, (*visit).showStory},
		{"GET " + of + "grants/end", EndGrants, (*visit).showEnd},
		{"POST " + of + "grants/end", EndGrants, (*visit).end},
		{"GET " + of + "end-agent", EndAgent, (*visit).showEndAgent},
		{"POST " + of + "end-agent", EndAgent, (*visit).endAgent},
		{"GET " + of + "users/suspend", SuspendUser, (*visit).showSuspend},
		{"POST " + of + "users/suspend", SuspendUser, (*visit).suspend},
		{"GET " + of + "users/resume", SuspendUser, (*visit).showResume},
		{"POST " + of + "users/resume", SuspendUser, (*visit).resume},
		{"GET " + of + "trail", SeeTrail, (*visit).showTrail},
		{"GET " + of + "trail/export", ExportTrail, (*visit).exportTrail},
		{"GET " + of + "usage", SeeUsage, (*visit).showUsage},
		{"GET " + of + "domains", See, (*visit).showDomains},
		{"POST " + of + "domains", ChangeDomains, (*visit).addDomain},
		{"POST " + of + "domains/{host}/check", LookOutside, (*visit).checkDomain},
		{"POST " + of + "domains/{host}/remove", ChangeDomains, (*visit).removeDomain},
		{"GET " + of + "interface", See, (*visit).showInterface},
		{"POST " + of + "interface/check", LookOutside, (*visit).checkInterface},
		{"POST " + of + "interface/provider", NameProvider, (*visit).nameProvider},
		{"GET " + of + "interface/move", ChangeInterface, (*visit).reviewMove},
		{"POST " + of + "interface/move", ChangeInterface, (*visit).moveInterface},
		{"GET " + of + "support-agent", SeeAgentEndpoint, (*visit).showSupportAgent},
		{"POST " + of + "support-agent", ChangeAgentEndpoint, (*visit).setSupportAgent},
		{"POST " + of + "support-agent/secret", ChangeAgentEndpoint, (*visit).renewAgentSecret},
		{"POST " + of + "support-agent/remove", ChangeAgentEndpoint, (*visit).removeSupportAgent},
		{"POST " + of + "support-agent/check", LookOutside, (*visit).checkSupportAgent},
		{"GET " + of + "login", See, (*visit).showConnections},
		{"POST " + of + "login", PrepareLogin, (*visit).saveCandidate},
		{"POST " + of + "login/look", LookOutside, (*visit).lookAtIssuer},
		{"GET " + of + "login/tried", TryLogin, (*visit).tried},
		{"POST " + of + "login/{connection}/check", LookOutside, (*visit).checkConnection},
		{"POST " + of + "login/{connection}/issuer", PrepareLogin, (*visit).correctIssuer},
		{"GET " + of + "login/{connection}/try", TryLogin, (*visit).tryLogin},
		{"POST " + of + "login/{connection}/live", ChangeLogin, (*visit).makeLive},
		{"POST " + of + "login/{connection}/remove", ChangeLogin, (*visit).removeConnection},
		{"GET " + of + "changes", See, (*visit).showChanges},
		{"POST " + of + "changes/{change}/approve", ApproveChange, (*visit).approveChange},
		{"POST " + of + "changes/{change}/reject", RejectChange, (*visit).rejectChange},
		{"GET " + of + "signing-keys", SeeSigningKeys, (*visit).showSigningKeys},
		{"POST " + of + "signing-keys", ChangeSigningKeys, (*visit).publishNextKey},
		{"GET " + of + "signing-keys/{kid}", ChangeSigningKeys, (*visit).showSigningKey},
		{"POST " + of + "signing-keys/{kid}/retire", ChangeSigningKeys, (*visit).takeKeyBack},
		{"POST " + of + "signing-keys/{kid}/revoke", ChangeSigningKeys, (*visit).revokeSigningKey},
		{"GET " + of + "webhooks", SeeWebhooks, (*visit).showWebhooks},
		{"POST " + of + "webhooks", ChangeWebhooks, (*visit).addWebhook},
		{"GET " + of + "webhooks/{webhook}", SeeWebhooks, (*visit).showWebhook},
		{"POST " + of + "webhooks/{webhook}/secret", ChangeWebhooks, (*visit).renewWebhook},
		{"POST " + of + "webhooks/{webhook}/disable", ChangeWebhooks, (*visit).disableWebhook},
		{"POST " + of + "webhooks/{webhook}/enable", ChangeWebhooks, (*visit).enableWebhook},
		{"POST " + of + "webhooks/{webhook}/test", SendWebhooks, (*visit).testWebhook},
		{"POST " + of + "webhooks/{webhook}/replay", SendWebhooks, (*visit).replayWebhook},
		{"GET " + of + "api-keys", SeeAPIKeys, (*visit).showAPIKeys},
		{"POST " + of + "api-keys", ChangeAPIKeys, (*visit).addAPIKey},
		{"GET " + of + "api-keys/{key}", ChangeAPIKeys, (*visit).showAPIKey},
		{"POST " + of + "api-keys/{key}/rotate", ChangeAPIKeys, (*visit).rotateAPIKey},
		{"POST " + of + "api-keys/{key}/revoke", ChangeAPIKeys, (*visit).revokeAPIKey},
		{"GET " + of + "connect", See, (*visit).showConnect},
		{"GET " + of + "try", TryOut, (*visit).showTry},
		{"POST " + of + "try", TryOut, (*visit).beginTry},
		{"POST " + of + "try/end", TryOut, (*visit).endTry},
	}
}

// register puts the routes on the mux. It is the only way in, and it panics at a
// route whose action the rights table does not know.
func (h *Handler) register(mux *http.ServeMux, all []route) {
	for _, r := range all {
		right, known := rights[r.action]
		if !known {
			panic(fmt.Sprintf("console: %s has no line in the rights table", r.pattern))
		}
		mux.Handle(r.pattern, h.page(r.action, right, r.serve))
	}
	mux.Handle("/console/", h.page(Visit, rights[Visit], func(*visit) error { return problem{kind: notFound} }))
}
