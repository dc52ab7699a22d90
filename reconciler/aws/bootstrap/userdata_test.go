package bootstrap

import (
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"
	"testing"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"
)

var testInfo = ClusterInfo{Endpoint: "https://ABC.eks.amazonaws.com", CA: "Q0E=", CIDR: "10.100.0.0/16", Version: "1.34"}

// decoded is the user data of nodes with 58 pods, in plain.
func decoded(t *testing.T, family string, edit func(*Node, *ClusterInfo)) (string, error) {
	t.Helper()
	node := Node{CapacityType: "spot", Class: &ec2v1.EC2NodeClass{}, Template: &karpv1.NodeClaim{}, MaxPods: 58}
	node.Class.Spec.AMIFamily = &family
	node.Template.Labels = map[string]string{
		"karpenter.sh/nodepool": "default", "team": "a", "node-restriction.kubernetes.io/x": "y", "node.kubernetes.io/x": "y", "topology.k8s.io/x": "y", "kubernetes.io/os": "linux",
	}
	node.Template.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	node.Template.Spec.StartupTaints = []corev1.Taint{{Key: "cilium", Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: time.Unix(0, 0)}}}
	info := testInfo
	if edit != nil {
		edit(&node, &info)
	}
	boot, err := New("myeks", info, node)
	if err != nil {
		return "", err
	}
	text, err := boot.UserData()
	if err != nil {
		return "", err
	}
	plain, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain), nil
}

func userDataOf(text string) func(*Node, *ClusterInfo) {
	return func(n *Node, _ *ClusterInfo) { n.Class.Spec.UserData = &text }
}

func everyKubelet(n *Node, _ *ClusterInfo) {
	n.Class.Spec.InstanceStorePolicy = new(ec2v1.InstanceStorePolicyRAID0)
	n.Class.Spec.Kubelet = &ec2v1.KubeletConfiguration{
		ClusterDNS: []string{"10.0.0.53", "10.0.0.54"}, MaxPods: new(int32(12)), PodsPerCore: new(int32(4)),
		SystemReserved: map[string]string{"cpu": "100m"}, KubeReserved: map[string]string{"memory": "200Mi"},
		EvictionHard: map[string]string{"memory.available": "5%"}, EvictionSoft: map[string]string{"memory.available": "10%"},
		EvictionSoftGracePeriod:   map[string]metav1.Duration{"memory.available": {Duration: time.Minute}},
		EvictionMaxPodGracePeriod: new(int32(120)), ImageGCHighThresholdPercent: new(int32(80)), ImageGCLowThresholdPercent: new(int32(70)), CPUCFSQuota: new(false),
	}
}

const plainNodeConfig = `# How this node joins the cluster, written by Reeve.
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    apiServerEndpoint: https://ABC.eks.amazonaws.com
    certificateAuthority: Q0E=
    cidr: 10.100.0.0/16
    name: myeks
  kubelet:
    config:
      clusterDNS:
      - 10.100.0.10
      maxPods: 58
      registerWithTaints:
      - effect: NoSchedule
        key: dedicated
        value: gpu
      - effect: NoExecute
        key: cilium
      - effect: NoExecute
        key: karpenter.sh/unregistered
    flags:
    - --node-labels="karpenter.sh/capacity-type=spot,karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=default,node.kubernetes.io/x=y,team=a"
`

func TestUserDataOfAL2023JoinsTheNode(t *testing.T) {
	got, err := decoded(t, ec2v1.AMIFamilyAL2023, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\nContent-Type: application/node.eks.aws\n\n" + plainNodeConfig + "\n--//--\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEverySettingOfTheKubeletReachesNodeadm(t *testing.T) {
	got, err := decoded(t, ec2v1.AMIFamilyAL2023, everyKubelet)
	if err != nil {
		t.Fatal(err)
	}
	parts := readParts(t, got)
	var config struct {
		Spec struct {
			Kubelet struct {
				Config map[string]any `json:"config"`
			} `json:"kubelet"`
			Instance any `json:"instance"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(parts[0][1]), &config); err != nil {
		t.Fatal(err)
	}
	delete(config.Spec.Kubelet.Config, "registerWithTaints")
	want := map[string]any{
		"clusterDNS": []any{"10.0.0.53", "10.0.0.54"}, "maxPods": 58.0, "podsPerCore": 4.0,
		"systemReserved": map[string]any{"cpu": "100m"}, "kubeReserved": map[string]any{"memory": "200Mi"},
		"evictionHard": map[string]any{"memory.available": "5%"}, "evictionSoft": map[string]any{"memory.available": "10%"},
		"evictionSoftGracePeriod":   map[string]any{"memory.available": "1m0s"},
		"evictionMaxPodGracePeriod": 120.0, "imageGCHighThresholdPercent": 80.0, "imageGCLowThresholdPercent": 70.0, "cpuCFSQuota": false,
	}
	if diff := cmp.Diff(want, config.Spec.Kubelet.Config); diff != "" {
		t.Errorf("kubelet (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"localStorage": map[string]any{"strategy": "RAID0"}}, config.Spec.Instance); diff != "" {
		t.Errorf("instance (-want +got):\n%s", diff)
	}
}

// readParts are type and body of the parts of a MIME document, as cloud-init
// would read them.
func readParts(t *testing.T, text string) [][2]string {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	var out [][2]string
	for r := multipart.NewReader(m.Body, params["boundary"]); ; {
		p, err := r.NextRawPart()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		body, err := io.ReadAll(p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, [2]string{p.Header.Get("Content-Type"), string(body)})
	}
}

func TestUserDataOfTheClassComesFirst(t *testing.T) {
	const shell, cloud, config = `text/x-shellscript; charset="us-ascii"`, `text/cloud-config; charset="us-ascii"`, "application/node.eks.aws"
	tests := []struct {
		name, user string
		want       [][2]string
	}{
		{"nothing", " \n", nil},
		{"a script", "#!/bin/sh\necho a: b\n", [][2]string{{shell, "#!/bin/sh\necho a: b\n"}}},
		{"a command without an interpreter", "yum install -y jq", [][2]string{{shell, "yum install -y jq"}}},
		{"what looks like a boundary", "#!/bin/sh\n--//\n--///x\n", [][2]string{{shell, "#!/bin/sh\n--//\n--///x\n"}}},
		{"a NodeConfig", "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n", [][2]string{{config, "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n"}}},
		{"a cloud-config", "#cloud-config\npackages: [jq]\n", [][2]string{{cloud, "#cloud-config\npackages: [jq]\n"}}},
		{"a list is no NodeConfig", "- a\n", [][2]string{{shell, "- a\n"}}},
		{
			"a MIME document", "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"==B==\"\n\n--==B==\nContent-Type: text/x-shellscript\n\necho 1\n\n--==B==\nContent-Type: application/node.eks.aws\n\nkind: NodeConfig\n--==B==--\n",
			[][2]string{{"text/x-shellscript", "echo 1\n"}, {config, "kind: NodeConfig"}},
		},
		{"a MIME document with Windows' line ends", "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=B\r\n\r\n--B\r\nContent-Type: text/x-shellscript\r\n\r\necho 1\r\n--B--\r\n", [][2]string{{"text/x-shellscript", "echo 1"}}},
		{"a MIME document of one part", "Content-Type: text/cloud-boothook\nMIME-Version: 1.0\n\necho 1\n", [][2]string{{"text/cloud-boothook", "echo 1\n"}}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := decoded(t, ec2v1.AMIFamilyAL2023, userDataOf(tc.user))
			if err != nil {
				t.Fatal(err)
			}
			want := append(tc.want, [2]string{config, plainNodeConfig})
			if diff := cmp.Diff(want, readParts(t, got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestUserDataOfACustomImageIsTheUsers(t *testing.T) {
	for _, user := range []string{"#!/bin/sh\nhello\n", ""} {
		if got, err := decoded(t, ec2v1.AMIFamilyCustom, userDataOf(user)); err != nil || got != user {
			t.Errorf("%q became %q, %v", user, got, err)
		}
	}
}

const plainSettings = `[settings]
[settings.kubernetes]
api-server = 'https://ABC.eks.amazonaws.com'
cluster-certificate = 'Q0E='
cluster-dns-ip = '10.100.0.10'
cluster-name = 'myeks'
max-pods = 58

[settings.kubernetes.node-labels]
'karpenter.sh/capacity-type' = 'spot'
'karpenter.sh/do-not-sync-taints' = 'true'
'karpenter.sh/nodepool' = 'default'
'node.kubernetes.io/x' = 'y'
team = 'a'

[settings.kubernetes.node-taints]
cilium = [':NoExecute']
dedicated = ['gpu:NoSchedule']
'karpenter.sh/unregistered' = [':NoExecute']
`

func TestUserDataOfBottlerocketJoinsTheNode(t *testing.T) {
	got, err := decoded(t, ec2v1.AMIFamilyBottlerocket, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plainSettings, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSettingsOfBottlerocketAreLaidOverTheUsers(t *testing.T) {
	got, err := decoded(t, ec2v1.AMIFamilyBottlerocket, func(n *Node, i *ClusterInfo) {
		everyKubelet(n, i)
		n.Class.Spec.UserData = new("[settings.kubernetes]\nmax-pods = 3\nregistry-qps = 7\n[settings.kubernetes.node-labels]\nmine = 'yes'\n[settings.host-containers.admin]\nenabled = true\n")
		n.Template.Labels, n.Template.Spec.Taints, n.Template.Spec.StartupTaints = nil, nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `[settings]
[settings.bootstrap-commands]
[settings.bootstrap-commands.000-mount-instance-storage]
commands = [['apiclient', 'ephemeral-storage', 'init'], ['apiclient', 'ephemeral-storage', 'bind', '--dirs', '/var/lib/containerd', '/var/lib/kubelet', '/var/log/pods']]
essential = true
mode = 'always'

[settings.host-containers]
[settings.host-containers.admin]
enabled = true

[settings.kubernetes]
api-server = 'https://ABC.eks.amazonaws.com'
cluster-certificate = 'Q0E='
cluster-dns-ip = ['10.0.0.53', '10.0.0.54']
cluster-name = 'myeks'
cpu-cfs-quota-enforced = false
eviction-max-pod-grace-period = 120
image-gc-high-threshold-percent = 80
image-gc-low-threshold-percent = 70
max-pods = 58
registry-qps = 7

[settings.kubernetes.eviction-hard]
'memory.available' = '5%'

[settings.kubernetes.eviction-soft]
'memory.available' = '10%'

[settings.kubernetes.eviction-soft-grace-period]
'memory.available' = '1m0s'

[settings.kubernetes.kube-reserved]
memory = '200Mi'

[settings.kubernetes.node-labels]
'karpenter.sh/capacity-type' = 'spot'
'karpenter.sh/do-not-sync-taints' = 'true'
mine = 'yes'

[settings.kubernetes.node-taints]
'karpenter.sh/unregistered' = [':NoExecute']

[settings.kubernetes.system-reserved]
cpu = '100m'
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheAddressOfDNSIsTheTenthOfTheRange(t *testing.T) {
	for cidr, want := range map[string]string{
		"10.100.0.0/16": "10.100.0.10", "172.20.0.0/16": "172.20.0.10", "fd11:2233:4455::/108": "fd11:2233:4455::a", "10.100.7.9/16": "10.100.0.10",
	} {
		got, err := Bootstrap{cluster: ClusterInfo{CIDR: cidr}, class: &ec2v1.EC2NodeClass{}}.clusterDNS()
		if err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%s: %v, %v, want %s", cidr, got, err, want)
		}
	}
}

func TestUserDataThatCannotBeMadeSaysWhy(t *testing.T) {
	al2023, rocket := ec2v1.AMIFamilyAL2023, ec2v1.AMIFamilyBottlerocket
	tests := []struct {
		want, family string
		edit         func(*Node, *ClusterInfo)
	}{
		{"is not known: EKS has to describe it", al2023, func(_ *Node, i *ClusterInfo) { i.CA = "" }},
		{"is not known: EKS has to describe it", rocket, func(_ *Node, i *ClusterInfo) { i.Endpoint = "" }},
		{"range of services of the cluster", al2023, func(_ *Node, i *ClusterInfo) { i.CIDR = "x" }},
		{"has no tenth address", rocket, func(_ *Node, i *ClusterInfo) { i.CIDR = "10.0.0.0/30" }},
		{"Bottlerocket takes TOML", rocket, userDataOf("#!/bin/sh\necho")},
		{"settings is not a table", rocket, userDataOf("settings = 3")},
		{"kubernetes is not a table", rocket, userDataOf("settings.kubernetes = 3")},
		{"node-labels is not a table", rocket, userDataOf("settings.kubernetes.node-labels = 3")},
		{"node-taints is not a table", rocket, userDataOf("settings.kubernetes.node-taints = 3")},
		{"bootstrap-commands is not a table", rocket, func(n *Node, i *ClusterInfo) {
			everyKubelet(n, i)
			userDataOf("settings.bootstrap-commands = 3")(n, i)
		}},
		{"begin it with its headers", al2023, userDataOf("MIME-Version: 1.0\nrubbish")},
		{"Content-Type: mime: no media type", al2023, userDataOf("MIME-Version: 1.0\n\nrubbish")},
		{"the boundary is missing", al2023, userDataOf("Content-Type: multipart/mixed\n\nrubbish")},
		{"end it with --B--", al2023, userDataOf("Content-Type: multipart/mixed; boundary=B\n\n--B\n\nrubbish")},
		{"images of family AL2 are not supported yet", ec2v1.AMIFamilyAL2, nil},
		{`spec.amiFamily: "Ubuntu" is unknown`, "Ubuntu", nil},
		{"UserDataSizeLimitExceeded: user data has 17000 bytes", al2023, userDataOf(strings.Repeat("x", 17000))},
		{"UserDataSizeLimitExceeded: user data has ", al2023, userDataOf("#!" + strings.Repeat("x", 16000))},
		{"correct the labels", al2023, func(n *Node, _ *ClusterInfo) { n.Template.Labels["a b"] = "" }},
	}
	for _, tc := range tests {
		t.Run(tc.want, func(t *testing.T) {
			if got, err := decoded(t, tc.family, tc.edit); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, user data %q", err, got)
			}
		})
	}
}

func TestTheFamilyFollowsFromTheAlias(t *testing.T) {
	for alias, want := range map[string]string{"al2023@latest": "AL2023", "bottlerocket@v1.2": "Bottlerocket", "windows2022@latest": "Windows2022", "al2023": "AL2023", "": "Custom", "custom@x": "", "@": "", "ubuntu@x": ""} {
		class := &ec2v1.EC2NodeClass{}
		class.Spec.AMISelectorTerms = []ec2v1.AMISelectorTerm{{Alias: alias}}
		got, err := FamilyOf(class)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("alias %q: family %q, %v", alias, got, err)
		}
	}
}

func FuzzUserData(f *testing.F) {
	for _, seed := range []string{
		"", "#!/bin/sh", "a: b", "a: &a [*a]", "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n--B\n\nx\n--B--", "Content-Type: multipart/mixed; boundary=\"\"\n\n",
		"[settings]\n", "settings = 3", "--//\n", "\r--//", "\x00\xff", "Content-Type: multipart/mixed; boundary=B\n\n--B\nA: b\n c\n\n--B--",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, user string) {
		if got, err := decoded(t, ec2v1.AMIFamilyAL2023, userDataOf(user)); err == nil {
			parts := readParts(t, got)
			last := parts[len(parts)-1]
			if last[0] != nodeConfigType || last[1] != plainNodeConfig {
				t.Errorf("the last part is %q", last)
			}
			again, err := decoded(t, ec2v1.AMIFamilyAL2023, userDataOf(user))
			if err != nil || again != got {
				t.Errorf("%q is not the same again: %v", user, err)
			}
		}
		if got, err := decoded(t, ec2v1.AMIFamilyBottlerocket, userDataOf(user)); err == nil && !strings.Contains(got, "cluster-name = 'myeks'") {
			t.Errorf("%q became %q", user, got)
		}
	})
}
