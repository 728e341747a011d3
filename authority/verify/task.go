package verify

import (
	"bytes"
	"encoding/json"
	"fmt"

	"countersign.dev/authority/canonical"
	"countersign.dev/authority/receiptlog"
	"golang.org/x/mod/sumdb/tlog"
)

// TaskReceipt verifies the receipt of a whole conversation, and that the receipts
// are its, all of them and in their order; each is verified as Receipt does. The
// report is that of the task receipt, and of the first receipt that is refused.
func TaskReceipt(keys Keys, jws string, receipts []string, opts ReceiptOptions) (receiptlog.Task, Report, error) {
	var report Report
	var t receiptlog.Task
	if opts.Brand == "" {
		return t, nil, fmt.Errorf("%w: the Brand's interface URL must be given", ErrOptions)
	}
	if _, ok := opts.Archive.find(kidIn(jws)); ok {
		// It stands in no log that could show it to be older.
		err := report.judge("key", ErrRevokedKey, "")
		return t, report, err
	}
	_, err := unseal(&report, keys, jws, maxToken, namesKey("pact-task-receipt+jws"))
	if err != nil {
		return t, report, err
	}
	var read receiptlog.Task
	err = json.Unmarshal(payloadIn(jws), &read)
	root, ok := receiptlog.Hash(read.Root)
	form, formErr := canonical.Of(read)
	switch {
	case err != nil || !ok || formErr != nil || !bytes.Equal(form, payloadIn(jws)):
		err = fmt.Errorf("%w: not those of a task", ErrClaims)
	case read.Brand != opts.Brand:
		err = fmt.Errorf("%w: %q instead of %q", ErrBrand, read.Brand, opts.Brand)
	case opts.Grant != "" && opts.Grant != read.GrantID:
		err = fmt.Errorf("%w: %q instead of %q", ErrGrant, read.GrantID, opts.Grant)
	case opts.User != "" && opts.User != read.User:
		err = fmt.Errorf("%w: %q instead of %q", ErrUser, read.User, opts.User)
	case opts.Agent != "" && opts.Agent != read.PA:
		err = fmt.Errorf("%w: %q instead of %q", ErrNotTransferable, read.PA, opts.Agent)
	}
	if report.judge("claims", err, fmt.Sprintf("%d receipts of the conversation %q", read.Count, read.ContextID)) != nil {
		return t, report, err
	}
	opts.Grant, opts.User, opts.Agent = read.GrantID, read.User, read.PA
	var edge receiptlog.Edge
	for i, one := range receipts {
		_, of, err := Receipt(keys, one, nil, opts)
		if err != nil {
			report = append(report, of...)
			return t, report, report.judge("receipts", fmt.Errorf("number %d: %w", i+1, err), "")
		}
		edge.Append(tlog.RecordHash(payloadIn(one)))
	}
	switch {
	case edge.Size != read.Count:
		err = fmt.Errorf("%w: %d receipts, and it binds %d", ErrDiffers, edge.Size, read.Count)
	case edge.Root() != root:
		err = fmt.Errorf("%w: other receipts, or in another order", ErrDiffers)
	}
	if report.judge("receipts", err, "all of them, in their order, and each holds") != nil {
		return t, report, err
	}
	return read, report, nil
}
