package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"testing/fstest"

	"github.com/spf13/cobra"

	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/importer"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/spec"
)

// importFlags are what reeve import was asked for.
type importFlags struct {
	target  importer.Target
	options importer.Options
	init    spec.InitOptions
	output  string
}

func importCommand() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import FILE|DIR|-...",
		Short: "Turn Karpenter's YAML into a fleet in CUE",
		Long: `Read NodePools and EC2NodeClasses from YAML files, from all files below
directories, or from standard input, and write them as CUE: into the cluster's
directory of a fleet repository with --dir, or to standard output. What kubectl
get -o yaml, Helm or Kustomize print is read as it is. The older kinds and
versions (v1beta1, Provisioner, AWSNodeTemplate) are converted.

The report has a line for everything that changed its meaning or its form, and
for everything that was not imported:

  changed      says the same in another way, or is a default written out
  dropped      was written by the API server or a controller
  placeholder  looks as if a template was not filled in; imported as it stands
  incomplete   lacks something that you have to add
  lost         a field that was not imported
  foreign      an object that is nothing of a fleet
  refused      a document that cannot be imported
  check        a fault in what was written, as reeve check reports it

Exits with 0 if everything was imported, 1 if the report has lines of the last
five classes, and 2 if nothing could be imported.`,
		Example: `  kubectl get nodepools,ec2nodeclasses -o yaml | reeve import -
  reeve import --dir . --cluster myeks karpenter.yaml
  reeve import --dir fleet --cluster myeks --region eu-central-1 manifests/ -o json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runImport(cmd, args, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.target.Dir, "dir", "", "fleet repository to write to (default: print the CUE)")
	fl.StringVar(&f.target.Cluster, "cluster", "", "name of the EKS cluster (default: the only one of the repository)")
	fl.BoolVar(&f.target.Force, "force", false, "overwrite nodepools.cue and nodeclasses.cue of the cluster")
	fl.StringVar(&f.init.Region, "region", "", "AWS region: makes the cluster's settings, and the repository, if they do not exist")
	fl.StringVar(&f.init.KubernetesVersion, "kubernetes-version", "1.34", "minor version of the control plane, beside --region")
	fl.StringVar(&f.options.Role, "role", "", "IAM role of the nodes for AWSNodeTemplates that name none")
	outputFlag(cmd, &f.output)
	return cmd
}

func runImport(cmd *cobra.Command, args []string, f importFlags) error {
	inputs, err := importer.Read(args, cmd.InOrStdin())
	if err != nil {
		return err
	}
	var fresh map[string][]byte
	if f.target.Dir == "" {
		f.target.Cluster = "imported"
		fresh, err = spec.Files(spec.InitOptions{Cluster: f.target.Cluster})
	} else {
		fresh, err = f.prepare()
	}
	if err != nil {
		return err
	}
	f.target.Fresh = fresh
	if f.options.Taken, err = f.target.Taken(); err != nil {
		return err
	}
	res := importer.Import(inputs, f.options)
	if len(res.Report.Imported) == 0 {
		return f.nothing(cmd, res)
	}
	if f.target.Dir == "" {
		return f.print(cmd, res)
	}
	return f.write(cmd, res)
}

// prepare finds the cluster, or makes the files that it lacks. Nothing is
// written yet.
func (f *importFlags) prepare() (map[string][]byte, error) {
	names, err := spec.Clusters(os.DirFS(f.target.Dir))
	if err != nil {
		return nil, err
	}
	if f.target.Cluster == "" {
		if len(names) != 1 {
			return nil, fmt.Errorf("import: %s has %d clusters: say which one with --cluster", f.target.Dir, len(names))
		}
		f.target.Cluster = names[0]
	}
	o := f.init
	o.Cluster = f.target.Cluster
	return spec.Files(o)
}

// nothing reports an import without a result. Where the CUE would have gone to
// standard output, the reasons do not: it may be redirected to a file.
func (f importFlags) nothing(cmd *cobra.Command, res *importer.Result) error {
	w := cmd.OutOrStdout()
	if f.target.Dir == "" && f.output != "json" {
		w = cmd.ErrOrStderr()
	}
	if err := f.report(w, res, nil); err != nil {
		return err
	}
	return fmt.Errorf("import: %w", importer.ErrNothing)
}

func (f importFlags) report(w io.Writer, res *importer.Result, files []importer.File) error {
	if f.output == "json" {
		return res.Report.JSON(w, files)
	}
	return res.Report.Text(w)
}

// print writes the CUE to standard output and the report to standard error.
func (f importFlags) print(cmd *cobra.Command, res *importer.Result) error {
	text, err := res.Single()
	if err != nil {
		return err
	}
	name := path.Join("clusters", f.target.Cluster, "nodepools.cue")
	tree := fstest.MapFS{}
	for n, b := range f.target.Fresh {
		tree[n] = &fstest.MapFile{Data: b}
	}
	delete(tree, path.Join("clusters", f.target.Cluster, "nodeclasses.cue"))
	tree[name] = &fstest.MapFile{Data: []byte(text)}
	if err := f.check(cmd.Context(), res, tree, map[string]string{name: "<stdout>"}); err != nil {
		return err
	}
	if f.output == "json" {
		err = f.report(cmd.OutOrStdout(), res, []importer.File{{Name: "fleet.cue", Text: text}})
	} else {
		fmt.Fprint(cmd.OutOrStdout(), text)
		err = f.report(cmd.ErrOrStderr(), res, nil)
	}
	return errors.Join(err, verdict(res))
}

// write writes into the repository, which is made if it does not exist.
func (f importFlags) write(cmd *cobra.Command, res *importer.Result) error {
	settled, err := f.settled()
	if err != nil {
		return err
	}
	var made []string
	if !settled {
		o := f.init
		o.Cluster = f.target.Cluster
		if made, err = spec.Init(f.target.Dir, o); err != nil {
			return err
		}
	}
	written, err := res.Write(f.target)
	if err != nil {
		return err
	}
	made = append(made, written...)
	slices.Sort(made)
	res.Report.Written = slices.Compact(made)
	if err := f.check(cmd.Context(), res, os.DirFS(f.target.Dir), nil); err != nil {
		return err
	}
	return errors.Join(f.report(cmd.OutOrStdout(), res, nil), verdict(res))
}

// settled says whether the directory is a fleet repository. A cluster without
// settings needs the region for them.
func (f importFlags) settled() (bool, error) {
	_, err := os.Stat(f.target.Dir + "/cue.mod/module.cue")
	repository := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("import: %w", err)
	}
	_, err = os.Stat(path.Join(f.target.Dir, "clusters", f.target.Cluster))
	switch {
	case repository && err == nil:
		return true, nil
	case f.init.Region != "":
		return repository, nil
	case repository:
		return false, fmt.Errorf("import: %s has no cluster %s: name it as reeve init did, or add --region to make it", f.target.Dir, f.target.Cluster)
	}
	return false, fmt.Errorf("import: %s is no fleet repository: run reeve init %s --cluster %s --region REGION first, or add --region to have it made", f.target.Dir, f.target.Dir, f.target.Cluster)
}

// check evaluates what was written: what reeve check would say of the specs is
// in the report, and so is whatever did not come through.
func (f importFlags) check(ctx context.Context, res *importer.Result, tree fs.FS, names map[string]string) error {
	loaded, err := spec.Load(ctx, tree, spec.Options{Cluster: f.target.Cluster})
	if found := port.Findings(err); len(found) > 0 {
		for _, d := range found {
			why := d.Message
			if d.Remediation != "" {
				why += " (" + d.Remediation + ")"
			}
			at := *d.Position
			if n := names[at.File]; n != "" {
				at.File = n
			}
			res.Report.Add(importer.Entry{Position: at, Class: importer.Finding, Field: fleet.Path(d.Path).String(), Why: why})
		}
		return nil
	}
	if err != nil {
		return err
	}
	return res.Verify(loaded)
}

// verdict is the exit code of an import that wrote something.
func verdict(res *importer.Result) error {
	if !res.Report.Clean() {
		return exitCode(exitFindings)
	}
	return nil
}
