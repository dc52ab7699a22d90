// Package ledgers holds a ledger of each released format. Each must verify for
// ever: an audit trail that a later release cannot read is none.
package ledgers

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/reeve-project/reeve/reconciler/ledger"
	"github.com/reeve-project/reeve/reconciler/replay"
)

func TestLedgersOfEveryFormatVerify(t *testing.T) {
	bundles, err := filepath.Glob("*/*.bundle")
	if err != nil || len(bundles) == 0 {
		t.Fatalf("no ledgers: %v", err)
	}
	for _, bundle := range bundles {
		t.Run(bundle, func(t *testing.T) {
			repo := filepath.Join(t.TempDir(), "ledger.git")
			if out, err := exec.Command("git", "clone", "-q", "--mirror", bundle, repo).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			src := ledger.Source{Repo: repo}
			res, err := replay.Verify(context.Background(), src)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range res.Problems {
				t.Errorf("verify: %s", p)
			}
			if res.Decisions == 0 {
				t.Error("the ledger is empty")
			}
			// Another engine version makes decisions that cannot be compared;
			// none may come out differently.
			sum, err := replay.Run(context.Background(), src, nil, func(r replay.Result) error {
				if r.Verdict == replay.Mismatch {
					t.Errorf("replay: %s", r)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Log(sum)
		})
	}
}
