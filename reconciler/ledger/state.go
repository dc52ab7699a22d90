package ledger

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/cluster"
)

// Files of the state, below state/.
const (
	snapshotFile    = "snapshot.json"
	nodesDir        = "nodes"
	shapesDir       = "shapes"
	daemonSetsDir   = "objects/daemonsets"
	nodeClassesDir  = "objects/nodeclasses"
	recentDir       = "objects/recent"
	pendingFile     = "objects/pods/pending.json"
	unavailableFile = "objects/offerings/unavailable.json"

	budgetsFile       = "objects/poddisruptionbudgets.json"
	interruptionsFile = "objects/interruptions.json"
	orphansFile       = "objects/orphans.json"
)

// Above this many nodes at the first snapshot, state/nodes has 256 directories.
const shardAbove = 1000

// foreignSuffix tells the file of a node from that of a claim of its name. No
// Kubernetes name ends so.
const foreignSuffix = "_node"

// Recent decisions are in files of this span, so that a pass changes the newest
// and the oldest only.
const recentSpan = 10 * time.Minute

// nodeRecord is a file of state/nodes.
type nodeRecord struct {
	cluster.Node
	Pods []podRecord `json:"pods,omitempty"`
}

// podRecord is a pod; what it shares with its siblings is the shape.
type podRecord struct {
	Shape       string    `json:"shape"`
	Namespace   string    `json:"namespace"`
	Name        string    `json:"name"`
	UID         string    `json:"uid,omitempty"`
	Created     time.Time `json:"created,omitzero"`
	Started     time.Time `json:"started,omitzero"`
	Terminating bool      `json:"terminating,omitempty"`
	Deadline    time.Time `json:"deadline,omitzero"`
	Unready     bool      `json:"unready,omitempty"`
	Preempting  bool      `json:"preempting,omitempty"`
}

type daemonSetRecord struct {
	cluster.DaemonSet
	Shape string `json:"shape"`
}

type snapshotRecord struct {
	Time       time.Time          `json:"time"`
	Controller cluster.Controller `json:"controller,omitzero"`
}

// encodeState is a snapshot as files below state/. Equal snapshots are equal
// bytes. A list has one element per line, so that a change reads well in a
// diff.
func encodeState(s *cluster.Snapshot, sharded bool) (map[string][]byte, error) {
	e := &stateEncoder{files: map[string][]byte{}, shapes: map[string]bool{}, sharded: sharded}
	e.json(snapshotFile, snapshotRecord{Time: s.Time, Controller: s.Controller})
	for _, n := range s.Nodes {
		e.node(n)
	}
	for _, d := range s.DaemonSets {
		e.shape(d.Shape)
		e.json(path.Join(daemonSetsDir, plainName(d.Namespace+"."+d.Name)+recordSuffix), daemonSetRecord{DaemonSet: *d, Shape: d.Shape.ID})
	}
	for _, c := range s.NodeClasses {
		e.json(path.Join(nodeClassesDir, plainName(c.Name)+recordSuffix), c)
	}
	if len(s.Pending) > 0 {
		e.list(pendingFile, "", e.pods(s.Pending))
	}
	if len(s.Unavailable) > 0 {
		e.list(unavailableFile, "", lines(e, s.Unavailable))
	}
	if len(s.Budgets) > 0 {
		e.list(budgetsFile, "", lines(e, s.Budgets))
	}
	if len(s.Interruptions) > 0 {
		e.list(interruptionsFile, "", lines(e, s.Interruptions))
	}
	if len(s.Orphans) > 0 {
		e.list(orphansFile, "", lines(e, s.Orphans))
	}
	e.recent(s.Recent)
	return e.files, e.err
}

type stateEncoder struct {
	files   map[string][]byte
	shapes  map[string]bool // written already
	sharded bool
	err     error
}

func (e *stateEncoder) json(name string, v any) {
	b, err := encodeJSON(v, "  ")
	if err != nil {
		e.err = cmp.Or(e.err, fmt.Errorf("state file %s: %w", name, err))
		return
	}
	e.files[name] = b
}

// list writes elements one per line: as a file of its own, or behind the
// members of an object that was encoded already.
func (e *stateEncoder) list(name, member string, elements [][]byte) {
	var b bytes.Buffer
	indent, end := "  ", "\n]\n"
	if member != "" {
		b.Write(bytes.TrimSuffix(e.files[name], []byte("\n}\n")))
		fmt.Fprintf(&b, ",\n  %q: ", member)
		indent, end = "    ", "\n  ]\n}\n"
	}
	b.WriteString("[")
	for i, line := range elements {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n" + indent)
		b.Write(line)
	}
	b.WriteString(end)
	e.files[name] = b.Bytes()
}

func lines[T any](e *stateEncoder, in []T) [][]byte {
	out := make([][]byte, len(in))
	for i := range in {
		b, err := encodeJSON(in[i], "")
		e.err = cmp.Or(e.err, err)
		out[i] = bytes.TrimSuffix(b, []byte("\n"))
	}
	return out
}

func (e *stateEncoder) node(n *cluster.Node) {
	name := path.Join(nodesDir, plainName(n.Key())+recordSuffix)
	if e.sharded {
		sum := sha256.Sum256([]byte(n.Key()))
		name = fmt.Sprintf("%s/%02x/%s", nodesDir, sum[0], path.Base(name))
	}
	if _, taken := e.files[name]; taken {
		// A node that is not ours has the name of a claim, which comes first.
		name = strings.TrimSuffix(name, recordSuffix) + foreignSuffix + recordSuffix
	}
	bare := *n
	bare.Pods = nil
	e.json(name, nodeRecord{Node: bare})
	if len(n.Pods) > 0 {
		e.list(name, "pods", e.pods(n.Pods))
	}
}

func (e *stateEncoder) pods(in []*cluster.Pod) [][]byte {
	out := make([][]byte, len(in))
	for i, p := range in {
		e.shape(p.Shape)
		out[i] = appendPod(nil, podRecord{
			Shape: p.Shape.ID, Namespace: p.Namespace, Name: p.Name, UID: p.UID,
			Created: p.Created, Started: p.Started, Terminating: p.Terminating,
			Deadline: p.Deadline, Unready: p.Unready, Preempting: p.Preempting,
		})
	}
	return out
}

func (e *stateEncoder) shape(sh *cluster.Shape) {
	if !e.shapes[sh.ID] {
		e.shapes[sh.ID] = true
		e.json(path.Join(shapesDir, plainName(sh.ID)+recordSuffix), sh)
	}
}

// appendPod encodes a pod as encoding/json does, which a test holds, in a
// fraction of the time: pods are most of a state.
func appendPod(b []byte, p podRecord) []byte {
	b = appendString(append(b, `{"shape":`...), p.Shape)
	b = appendString(append(b, `,"namespace":`...), p.Namespace)
	b = appendString(append(b, `,"name":`...), p.Name)
	if p.UID != "" {
		b = appendString(append(b, `,"uid":`...), p.UID)
	}
	if !p.Created.IsZero() {
		b = appendTime(append(b, `,"created":`...), p.Created)
	}
	if !p.Started.IsZero() {
		b = appendTime(append(b, `,"started":`...), p.Started)
	}
	if p.Terminating {
		b = append(b, `,"terminating":true`...)
	}
	if !p.Deadline.IsZero() {
		b = appendTime(append(b, `,"deadline":`...), p.Deadline)
	}
	if p.Unready {
		b = append(b, `,"unready":true`...)
	}
	if p.Preempting {
		b = append(b, `,"preempting":true`...)
	}
	return append(b, '}')
}

func appendTime(b []byte, t time.Time) []byte {
	return append(t.AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
}

func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := encodeJSON(s, "") // a string always encodes
			return append(b, bytes.TrimSuffix(quoted, []byte("\n"))...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

func (e *stateEncoder) recent(all []cluster.Recent) {
	for i := 0; i < len(all); {
		span := all[i].Time.UTC().Truncate(recentSpan)
		j := i
		for j < len(all) && all[j].Time.UTC().Truncate(recentSpan).Equal(span) {
			j++
		}
		e.list(path.Join(recentDir, span.Format("20060102T1504Z")+recordSuffix), "", lines(e, all[i:j]))
		i = j
	}
}

func encodeJSON(v any, indent string) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	err := enc.Encode(v)
	return buf.Bytes(), err
}

func decodeJSON(b []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if dec.More() {
		return errors.New("something follows the JSON value")
	}
	return nil
}

// decodeState reads what encodeState wrote. It fails on what it does not know,
// since a state that is read differently from how it was written would replay
// as another.
func decodeState(state fs.FS) (*cluster.Snapshot, error) {
	d := &stateDecoder{fs: state, shapes: map[string]*cluster.Shape{}}
	s := &cluster.Snapshot{}
	var head snapshotRecord
	if err := d.file(snapshotFile, &head); err != nil {
		return nil, err
	}
	s.Time, s.Controller = head.Time, head.Controller
	for _, read := range []func(*cluster.Snapshot) error{d.readShapes, d.nodes, d.daemonSets, d.nodeClasses, d.lists, d.recent} {
		if err := read(s); err != nil {
			return nil, err
		}
	}
	return s.Seal(), nil
}

type stateDecoder struct {
	fs     fs.FS
	shapes map[string]*cluster.Shape
}

func (d *stateDecoder) file(name string, into any) error {
	b, err := fs.ReadFile(d.fs, name)
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	if err := decodeJSON(b, into); err != nil {
		return fmt.Errorf("state file %s: %w", name, err)
	}
	return nil
}

// each reads every file below a directory; one that is missing has none.
func (d *stateDecoder) each(dir string, read func(name string) error) error {
	return fs.WalkDir(d.fs, dir, func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && name == dir {
			return fs.SkipDir
		}
		if err != nil {
			return fmt.Errorf("state: %w", err)
		}
		if entry.IsDir() {
			return nil
		}
		return read(name)
	})
}

func (d *stateDecoder) readShapes(*cluster.Snapshot) error {
	return d.each(shapesDir, func(name string) error {
		sh := &cluster.Shape{}
		if err := d.file(name, sh); err != nil {
			return err
		}
		id := sh.Sealed().ID
		if want := plainName(id) + recordSuffix; path.Base(name) != want {
			return fmt.Errorf("state file %s: its content is the shape %s: the file was changed", name, id)
		}
		d.shapes[id] = sh
		return nil
	})
}

func (d *stateDecoder) shape(id, where string) (*cluster.Shape, error) {
	sh, ok := d.shapes[id]
	if !ok {
		return nil, fmt.Errorf("state file %s: there is no shape %s", where, id)
	}
	return sh, nil
}

func (d *stateDecoder) pods(in []podRecord, where string) ([]*cluster.Pod, error) {
	var out []*cluster.Pod
	for _, p := range in {
		sh, err := d.shape(p.Shape, where)
		if err != nil {
			return nil, err
		}
		out = append(out, &cluster.Pod{
			Namespace: p.Namespace, Name: p.Name, UID: p.UID, Created: p.Created,
			Started: p.Started, Terminating: p.Terminating, Shape: sh,
			Deadline: p.Deadline, Unready: p.Unready, Preempting: p.Preempting,
		})
	}
	return out, nil
}

func (d *stateDecoder) nodes(s *cluster.Snapshot) error {
	return d.each(nodesDir, func(name string) error {
		var rec nodeRecord
		if err := d.file(name, &rec); err != nil {
			return err
		}
		n := rec.Node
		var err error
		if n.Pods, err = d.pods(rec.Pods, name); err != nil {
			return err
		}
		s.Nodes = append(s.Nodes, &n)
		return nil
	})
}

func (d *stateDecoder) daemonSets(s *cluster.Snapshot) error {
	return d.each(daemonSetsDir, func(name string) error {
		var rec daemonSetRecord
		if err := d.file(name, &rec); err != nil {
			return err
		}
		ds := rec.DaemonSet
		var err error
		if ds.Shape, err = d.shape(rec.Shape, name); err != nil {
			return err
		}
		s.DaemonSets = append(s.DaemonSets, &ds)
		return nil
	})
}

func (d *stateDecoder) nodeClasses(s *cluster.Snapshot) error {
	return d.each(nodeClassesDir, func(name string) error {
		c := &cluster.NodeClassStatus{}
		s.NodeClasses = append(s.NodeClasses, c)
		return d.file(name, c)
	})
}

func (d *stateDecoder) lists(s *cluster.Snapshot) error {
	var pending []podRecord
	if err := d.optional(pendingFile, &pending); err != nil {
		return err
	}
	var err error
	if s.Pending, err = d.pods(pending, pendingFile); err != nil {
		return err
	}
	for name, into := range map[string]any{
		unavailableFile: &s.Unavailable, budgetsFile: &s.Budgets, interruptionsFile: &s.Interruptions, orphansFile: &s.Orphans,
	} {
		if err := d.optional(name, into); err != nil {
			return err
		}
	}
	return nil
}

func (d *stateDecoder) optional(name string, into any) error {
	err := d.file(name, into)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (d *stateDecoder) recent(s *cluster.Snapshot) error {
	err := d.each(recentDir, func(name string) error {
		var part []cluster.Recent
		err := d.file(name, &part)
		s.Recent = append(s.Recent, part...)
		return err
	})
	slices.SortStableFunc(s.Recent, func(a, b cluster.Recent) int { return a.Time.Compare(b.Time) })
	return err
}

// claimOf reads from a file of state/nodes which decision made its NodeClaim.
func claimOf(b []byte) (*cluster.Claim, error) {
	var rec nodeRecord
	if err := decodeJSON(b, &rec); err != nil {
		return nil, err
	}
	return rec.Claim, nil
}

func isNodeFile(p string) bool { return strings.HasPrefix(p, stateDir+"/"+nodesDir+"/") }
