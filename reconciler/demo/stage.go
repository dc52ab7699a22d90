package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"

	"github.com/reeve-project/reeve/examples"
	"github.com/reeve-project/reeve/reconciler/aws"
	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/gitrepo"
	"github.com/reeve-project/reeve/reconciler/ledger"
	"github.com/reeve-project/reeve/reconciler/pipeline"
	"github.com/reeve-project/reeve/reconciler/resources"
	"github.com/reeve-project/reeve/reconciler/sim"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
	"github.com/reeve-project/reeve/reconciler/spec"
)

// specBranch is where the platform team pushes.
const specBranch = "main"

// stage is a simulated cluster and AWS account with the real pipeline, and the
// production client of AWS, in it.
type stage struct {
	scene    scene
	print    *printer
	world    *sim.World
	account  *awsapi.Endpoint
	cloud    *aws.Cloud
	ledger   *ledger.Ledger
	pipeline *pipeline.Pipeline
	repo     string
	branch   string

	// author is the clone of the platform team, files what is in it, tip its
	// last commit.
	author *gitrepo.Repo
	files  map[string][]byte
	tip    gitrepo.Hash

	decisions []*decision.Decision
	// refusals are what the simulated scheduler says of plans: nothing, unless
	// the engine is wrong.
	refusals []error
}

func newStage(ctx context.Context, o Options, sc scene) (*stage, error) {
	s := &stage{
		scene: sc, print: &printer{o.Out}, repo: filepath.Join(o.Dir, sc.repository()), branch: "reeve/" + sc.cluster,
		files: map[string][]byte{},
	}
	if err := s.setRepository(); err != nil {
		return nil, err
	}
	if err := s.setCluster(); err != nil {
		return nil, err
	}
	specs, err := gitrepo.Open(s.repo, gitrepo.Options{})
	if err != nil {
		return nil, err
	}
	decisions, err := gitrepo.Open(s.repo, gitrepo.Options{})
	if err != nil {
		return nil, err
	}
	s.ledger, err = ledger.Open(ctx, ledger.Options{
		Cluster: sc.cluster, Branch: s.branch, Repo: decisions, Specs: specs, Spool: sim.NewSpool(s.world),
		PushInterval: 10 * time.Second, SkipCI: true,
	}, s.world.Now())
	if err != nil {
		return nil, err
	}
	s.pipeline = pipeline.New(pipeline.Deps{
		Specs:   spec.NewRepository(specs, specBranch, spec.Options{Cluster: sc.cluster}),
		Cluster: sim.NewCluster(s.world), Cloud: s.cloud, Queue: s.cloud.Queue(), Ledger: s.ledger, Clock: s.world.Clock,
		Log: slog.New(slog.DiscardHandler),
	}, pipeline.Options{Cluster: sc.cluster, Identity: "reeve-demo", PullInterval: 10 * time.Second, Observer: s.watch})
	return s, s.pipeline.Start(ctx)
}

// setRepository makes the bare repository and the platform team's clone.
func (s *stage) setRepository() error {
	if err := gitrepo.InitBare(s.repo, specBranch); err != nil {
		return err
	}
	if err := gitrepo.Unsynced(s.repo); err != nil {
		return err
	}
	author, err := gitrepo.Open(s.repo, gitrepo.Options{})
	if err != nil {
		return err
	}
	s.author = author
	example, err := examples.Fleet(s.scene.example)
	if err != nil {
		return err
	}
	return fs.WalkDir(example, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		s.files[path], err = fs.ReadFile(example, path)
		return err
	})
}

// watch prints an event and remembers the decisions.
func (s *stage) watch(e pipeline.Event) {
	if e.Decision != nil && e.Step == nil {
		s.decisions = append(s.decisions, e.Decision)
		if f := s.pipeline.Fleet(); f != nil && e.Decision.Verdict.Allowed {
			if err := s.world.CheckPlan(&e.Decision.Proposal, f, s.types); err != nil {
				s.refusals = append(s.refusals, fmt.Errorf("%s: %w", e.Decision.Summary, err))
			}
		}
	}
	s.print.event(e)
}

// last is the decision that was made last, if it is of the kind.
func (s *stage) last(k decision.Kind) *decision.Decision {
	if n := len(s.decisions); n > 0 && s.decisions[n-1].Kind == k {
		return s.decisions[n-1]
	}
	return nil
}

// push commits the files, with the changes, to the spec branch.
func (s *stage) push(ctx context.Context, subject string, changes map[string][]byte) error {
	next, err := s.commit(subject, changes)
	if err != nil {
		return err
	}
	if err := s.author.Push(ctx, specBranch, s.tip, next); err != nil {
		return err
	}
	s.print.line("%s  git push  %.8s %s", s.world.Now().Format(time.TimeOnly), next, subject)
	maps.Copy(s.files, changes)
	s.tip = next
	s.pipeline.Wake()
	return nil
}

// commit writes a commit of the files, with the changes, after the tip.
func (s *stage) commit(subject string, changes map[string][]byte) (gitrepo.Hash, error) {
	ed, err := s.author.Edit(gitrepo.Hash{})
	if err != nil {
		return gitrepo.Hash{}, err
	}
	files := maps.Clone(s.files)
	maps.Copy(files, changes)
	for name, content := range files {
		if err := ed.Set(name, content); err != nil {
			return gitrepo.Hash{}, err
		}
	}
	tree, err := ed.Write()
	if err != nil {
		return gitrepo.Hash{}, err
	}
	sig := gitrepo.Signature{Name: "Platform Team", Email: "platform@example.com", When: s.world.Now()}
	c := gitrepo.Commit{Tree: tree, Author: sig, Committer: sig, Message: subject + "\n"}
	if !s.tip.IsZero() {
		c.Parents = []gitrepo.Hash{s.tip}
	}
	return s.author.WriteCommit(c, nil)
}

// pass lets virtual time go by, with a pass every second.
func (s *stage) pass(ctx context.Context, d time.Duration) error {
	for end := s.world.Now().Add(d); s.world.Now().Before(end); {
		if err := errors.Join(append(s.refusals, s.pipeline.Pass(ctx))...); err != nil {
			return err
		}
		if err := s.world.Clock.Advance(time.Second); err != nil {
			return err
		}
	}
	return nil
}

// until lets time go by until it is done and no decision is open, for at most
// the limit.
func (s *stage) until(ctx context.Context, limit time.Duration, done func() bool) error {
	for end := s.world.Now().Add(limit); s.world.Now().Before(end); {
		if err := s.pass(ctx, time.Second); err != nil {
			return err
		}
		if done() && !s.pipeline.Open() {
			return nil
		}
	}
	return fmt.Errorf("not done after %s of virtual time", limit)
}

// allRunning says whether exactly so many pods of the app run.
func (s *stage) allRunning(app string, replicas int) func() bool {
	return func() bool {
		running, starting, pending := s.world.Pods("default", map[string]string{"app": app})
		return running == replicas && starting == 0 && pending == 0
	}
}

// types are the instance types of nodes of the class, as EC2 sells them.
func (s *stage) types(class *ec2v1.EC2NodeClass) ([]*catalog.InstanceType, error) {
	ctx := context.Background()
	data, err := s.cloud.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	resolved := class.DeepCopy()
	if resolved.Status, err = s.cloud.ResolveNodeClass(ctx, class); err != nil {
		return nil, err
	}
	return data.Resolve(resolved, catalog.DefaultSettings())
}

// instances are what runs in EC2 in the cluster's name. The account is asked
// and not the client: what is printed and checked is what is there.
func (s *stage) instances() []awsapi.Instance {
	return slices.DeleteFunc(s.account.Instances(), func(in awsapi.Instance) bool {
		return in.Managed || in.State != "pending" && in.State != "running"
	})
}

// cost is what the instances of a NodePool cost; all of ours for "".
func (s *stage) cost(pool string) resources.Price {
	var sum resources.Price
	for _, in := range s.instances() {
		if pool == "" || in.Tags["karpenter.sh/nodepool"] == pool {
			sum += in.Price
		}
	}
	return sum
}

// close prints what is left to look at.
func (s *stage) close() {
	all := s.instances()
	fmt.Fprintf(s.print.w, "\n%s %s. %s recorded in %s.\n", number(len(all), "node costs", "nodes cost"), s.cost(""),
		number(len(s.decisions), "decision was", "decisions were"), filepath.Base(s.repo))
	s.refused()
}

// refused prints what policy did not let pass.
func (s *stage) refused() {
	heading := false
	for _, d := range s.decisions {
		if d.Verdict.Allowed {
			continue
		}
		if !heading {
			fmt.Fprintln(s.print.w, "\nPolicy refused:")
			heading = true
		}
		s.print.line("%s", strings.TrimSpace(d.Summary))
	}
}

// invite says how to go on from here.
func invite(w io.Writer, repo, branch string) {
	fmt.Fprintf(w, `
Everything is in Git now. Look around:
  git -C %[1]s log --oneline %[2]s
  git -C %[1]s show %[2]s
  git -C %[1]s ls-tree -r --name-only %[2]s decisions state
  reeve log --repo %[1]s
  reeve explain decision latest --repo %[1]s
  reeve verify --repo %[1]s
  reeve replay --all --repo %[1]s
`, repo, branch)
}
