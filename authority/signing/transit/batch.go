package transit

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"

	"countersign.dev/authority/signing"
	"github.com/hashicorp/vault/api"
)

// send makes one call for all items and answers each. The call belongs to no
// single caller and so has a deadline of its own.
func (b *Backend) send(key laneKey, items []*item) {
	secret, err := b.signBatch(key, items)
	if err != nil {
		answerAll(items, err)
		return
	}
	results := readBatch(secret, key, len(items))
	for i, it := range items {
		if k := kindOf(results[i].Err); k != ok {
			b.server.metrics.failed(k)
			b.server.alarm(it.ctx, fmt.Errorf("key %d of %s: %w", key.version, key.brand, results[i].Err))
		}
		it.result <- results[i]
	}
}

func (b *Backend) signBatch(key laneKey, items []*item) (*api.Secret, error) {
	name, err := b.keyName(key.brand, key.alg)
	if err != nil {
		return nil, err
	}
	type input struct {
		Input     string `json:"input"`
		Reference string `json:"reference"`
	}
	batch := make([]input, len(items))
	for i, it := range items {
		batch[i] = input{base64.StdEncoding.EncodeToString(it.digest[:]), strconv.Itoa(i)}
	}
	body := map[string]any{
		"batch_input": batch,
		// Never Vault's newest: after a rotation nobody has fetched that key yet.
		"key_version":    int(key.version),
		"prehashed":      true,
		"hash_algorithm": "sha2-256",
		// r‖s of 64 bytes; the default is ASN.1.
		"marshaling_algorithm": "jws",
	}
	if key.alg == signing.RS256 {
		body["signature_algorithm"] = "pkcs1v15" // the default is PSS
	}
	return b.server.write(context.Background(), "sign", b.timeout, b.mount+"/sign/"+name, body)
}

// readBatch finds each item's answer by its reference: an answer at the wrong
// place would be another token's signature. What has no answer gets an error.
func readBatch(secret *api.Secret, key laneKey, n int) []signing.Result {
	results := make([]signing.Result, n)
	for i := range results {
		results[i].Err = &failure{kind: broken, err: errors.New("no answer for this signature")}
	}
	if secret == nil {
		return results
	}
	answers, _ := secret.Data["batch_results"].([]any)
	seen := make([]bool, n)
	for _, raw := range answers {
		answer, _ := raw.(map[string]any)
		reference, _ := answer["reference"].(string)
		i, err := strconv.Atoi(reference)
		if err != nil || i < 0 || i >= n {
			continue
		}
		if seen[i] {
			results[i] = signing.Result{Err: &failure{kind: broken, err: errors.New("two answers for one signature")}}
			continue
		}
		seen[i] = true
		results[i] = readAnswer(answer, key)
	}
	return results
}

func readAnswer(answer map[string]any, key laneKey) signing.Result {
	if words, _ := answer["error"].(string); words != "" {
		k := refused
		if namesKey(words) {
			k = missing
		}
		return signing.Result{Err: &failure{kind: k, err: errors.New(words)}}
	}
	text, _ := answer["signature"].(string)
	version, encoded, marked := parseMark(text)
	if !marked || version != int(key.version) {
		return signing.Result{Err: &failure{kind: broken, err: fmt.Errorf("version %d was asked for, another answered", key.version)}}
	}
	sig, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || key.alg == signing.ES256 && len(sig) != 64 {
		return signing.Result{Err: &failure{kind: broken, err: fmt.Errorf("not an %s signature", key.alg)}}
	}
	return signing.Result{Signature: sig}
}
