// Package ledger is the decision branch: Git as flight recorder.
//
// The tip of the branch holds the decisions of the last days, the cluster's
// state, and every input that decisions depend on; history holds the rest. A
// clone is enough to list, explain, verify and replay every decision.
//
//	README.md                            what the branch is, format version, counts
//	decisions/2026-04-06/12.0000/        blocks of at most 256 files:
//	  122402.547Z-<hash>-<kind>-<subject>.json and ….outcome.json
//	decisions/2026-04-06/lists/<id>.txt  instance type names that decisions refer to
//	decisions/2026-04-06/SUMMARY.md      the day as a table
//	days/2026-04-06.json                 where a day is that has left the tip
//	open/<decision>                      path of a decision whose outcome is not final
//	state/leader.json                    format version, cluster, epoch and leader
//	state/snapshot.json                  the instant that the state was read
//	state/nodes/<node>.json              node, NodeClaim and pods by shape
//	state/shapes/<id>.json               pod shapes, each once
//	state/objects/<kind>/…               DaemonSets, class status, pending pods, …
//	inputs/accepted.json                 the accepted spec commit
//	inputs/fleet                         its tree, with the same object ids
//	inputs/policies                      all Rego that judges, shipped files included
//	inputs/proposed/{fleet,policies}     the same of a commit under judgement,
//	                                     in the commit of its accept or reject only
//	inputs/catalog                       instance types and prices
//
// A commit is one pass. Its parents are a chain; its trailers name the
// decisions in it and the epoch of the leader who wrote it.
package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
)

const (
	readmeFile   = "README.md"
	decisionsDir = "decisions"
	daysDir      = "days"
	openDir      = "open"
	stateDir     = "state"
	inputsDir    = "inputs"

	leaderFile   = stateDir + "/leader.json"
	acceptedFile = inputsDir + "/accepted.json"
	fleetDir     = inputsDir + "/fleet"
	policiesDir  = inputsDir + "/policies"
	proposedDir  = inputsDir + "/proposed"

	listsDir    = "lists"
	summaryFile = "SUMMARY.md"
)

// Folders whose contents View.ID names.
const (
	// CatalogDir holds types and prices.
	CatalogDir = inputsDir + "/catalog"
	// ProposedFleetDir holds the fleet that an accept or reject has judged.
	ProposedFleetDir = proposedDir + "/fleet"
)

// owned are the entries of the root that belong to the ledger. All others are
// kept as whoever made them left them.
var owned = []string{readmeFile, daysDir, decisionsDir, inputsDir, openDir, stateDir}

const (
	recordSuffix  = ".json"
	outcomeSuffix = ".outcome.json"

	dayFormat  = "2006-01-02"
	hourFormat = "15"
	timeFormat = "150405.000Z"

	// Decisions of one block: each may get an outcome, and a block has at most
	// 256 files.
	blockSize = 128
)

func dayDir(t time.Time) string { return decisionsDir + "/" + t.UTC().Format(dayFormat) }

func blockDir(t time.Time, n int) string {
	return fmt.Sprintf("%s/%s.%04d", dayDir(t), t.UTC().Format(hourFormat), n)
}

// recordStem is how the file name of a decision begins: it names the decision
// within its hour.
func recordStem(id string) (time.Time, string, error) {
	t, hash, err := decision.ParseID(id)
	if err != nil {
		return time.Time{}, "", err
	}
	return t, t.Format(timeFormat) + "-" + hash + "-", nil
}

// recordName is the file name of a decision. What tells files apart stands
// before what they have in common, since Git looks for similar files by the end
// of their path.
func recordName(d *decision.Decision) (string, error) {
	_, stem, err := recordStem(d.ID)
	if err != nil {
		return "", err
	}
	return stem + string(d.Kind) + "-" + plainName(d.Subject()) + recordSuffix, nil
}

func outcomePath(record string) string {
	return strings.TrimSuffix(record, recordSuffix) + outcomeSuffix
}

func isRecord(name string) bool {
	return strings.HasSuffix(name, recordSuffix) && !strings.HasSuffix(name, outcomeSuffix)
}

// recordKind is the kind in a decision's file name.
func recordKind(name string) string {
	parts := strings.SplitN(name, "-", 4)
	if len(parts) < 4 {
		return ""
	}
	return parts[2]
}

// isBlock says whether a path is a block of a day.
func isBlock(name string) bool { return len(name) == len("12.0000") && name[2] == '.' }

// dayOf is the day in a path below decisions/.
func dayOf(p string) string {
	parts := strings.SplitN(p, "/", 3)
	if len(parts) < 3 || parts[0] != decisionsDir {
		return ""
	}
	return parts[1]
}

func listPath(t time.Time, id string) string {
	return path.Join(dayDir(t), listsDir, id+".txt")
}

// Longest stem of a file name that is taken from a name in the cluster. Names
// of nodes can be longer than a file name may be.
const maxStem = 200

// plainName makes a name safe as part of a file name. Different names stay
// different.
func plainName(name string) string {
	plain := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.', c == '_':
			return c
		}
		return '_'
	}, name)
	if plain == name && len(name) <= maxStem && name != "" && name[0] != '.' {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "x" + plain[:min(len(plain), maxStem)] + "-" + hex.EncodeToString(sum[:8])
}
