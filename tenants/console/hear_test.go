package console_test

import (
	"slices"
	"testing"

	"countersign.dev/tenants"
	"countersign.dev/tenants/console"
)

// What owners hear of when it is done on the dashboard, they hear of when a program or a
// shell does it: every line of the rights table that tells names its events here, or
// is an owner's word that a program can only ask for, or is told by package authority.
func TestOwnersHearOfAsMuchByOtherWays(t *testing.T) {
	elsewhere := []console.Action{
		console.InviteMember, console.ChangeMember, console.RemoveMember, console.QuitBrand, console.ConfirmMember, console.VouchForMember,
		console.ChangeSigningKeys, console.CloseBrand,
	}
	events := map[console.Action][]string{
		console.WithdrawInvitation: {tenants.EventWithdrawn}, console.CancelRecovery: {tenants.EventRecoveryCancelled},
		console.ChangeLogin: {"login.live", "login.removed"}, console.PrepareLogin: {"login.candidate"},
		console.ChangeInterface: {"brand.interface"}, console.NameProvider: {"provider.made", "provider.named"},
		console.RetirePermission: {"scope.retired"}, console.RestorePermission: {"scope.restored"},
		console.ChangeAgentRule: {"brand.settings"}, console.PauseBrand: {"brand.paused"}, console.ResumeBrand: {"brand.resumed"},
		console.ExportBrand: {tenants.EventExported}, console.ChangeDomains: {"domain.added", "domain.removed"},
		console.ApproveChange: {"change.applied"}, console.RejectChange: {"change.rejected"},
		console.ChangeAgentEndpoint: {"agent_endpoint.set", "agent_endpoint.removed", "agent_endpoint.secret_rotated"},
		console.ChangeWebhooks:      {"webhook.created", "webhook.secret_rotated", "webhook.enabled", "webhook.disabled"},
		console.ChangeAPIKeys:       {"apikey.created", "apikey.rotated", "apikey.revoked"},
		console.ChangeAdminKeys:     {"apikey.created", "apikey.rotated"},
	}
	for _, d := range console.Doors() {
		if !d.Tells || slices.Contains(elsewhere, d.Action) {
			continue
		}
		if len(events[d.Action]) == 0 {
			t.Errorf("%s: of which events do owners hear?", d.Action)
		}
		for _, event := range events[d.Action] {
			if !slices.Contains(tenants.OwnersHear(), event) {
				t.Errorf("%s: by other ways nobody hears of %s", d.Action, event)
			}
		}
	}
}
