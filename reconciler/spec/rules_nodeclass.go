package spec

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/reeve-project/reeve/reconciler/resources"
)

func checkNodeClass(spec node, add adder) {
	checkRole(spec, add)
	checkAMITerms(spec.get("amiSelectorTerms"), add)
	checkAMIFamily(spec, add)
	checkTerms(spec.get("subnetSelectorTerms"), []string{"tags", "id"}, map[string][]string{"id": {"tags"}}, add)
	checkTerms(spec.get("securityGroupSelectorTerms"), []string{"tags", "id", "name"},
		map[string][]string{"id": {"tags", "name"}, "name": {"tags", "id"}}, add)
	checkTerms(spec.get("capacityReservationSelectorTerms"), []string{"tags", "id", "instanceMatchCriteria"},
		map[string][]string{"id": {"tags", "ownerID", "instanceMatchCriteria"}}, add)
	checkBlockDevices(spec.get("blockDeviceMappings").items(), spec.get("blockDeviceMappings"), add)
	checkNetworkInterfaces(spec.get("networkInterfaces"), add)
	checkSmallStructs(spec, add)
	checkKubelet(spec.get("kubelet"), add)
}

func checkRole(spec node, add adder) {
	switch {
	case spec.has("role") && spec.has("instanceProfile"):
		add(spec.at("instanceProfile"), "role and instanceProfile cannot both be set", "keep one of them")
	case !spec.has("role") && !spec.has("instanceProfile"):
		add(spec.path, "neither role nor instanceProfile is set", "set role to the name of the nodes' IAM role")
	}
}

// checkAMITerms: a term says something, an id or an alias stands alone in its
// term, and an alias stands alone in the list.
func checkAMITerms(list node, add adder) {
	terms := list.items()
	for _, t := range terms {
		switch {
		case !t.hasAny("tags", "id", "name", "alias", "ssmParameter"):
			add(t.path, "this term selects nothing", "set alias, id, name, tags or ssmParameter")
		case t.has("alias") && t.hasAny("id", "tags", "name", "owner"):
			add(t.at("alias"), "alias cannot be combined with other fields", "keep alias alone in its term")
		case t.has("id") && t.hasAny("tags", "name", "owner"):
			add(t.at("id"), "id cannot be combined with other fields", "keep id alone in its term")
		}
		if alias := t.get("alias").str(); t.has("alias") && !wellFormedAlias(alias) {
			add(t.at("alias"), fmt.Sprintf("%q is not an alias", alias), "write family@version, such as al2023@v20260318, with one @ and no spaces")
		}
		if t.has("alias") && len(terms) > 1 {
			add(t.at("alias"), "an alias must be the only term", "remove the other terms")
		}
	}
}

// wellFormedAlias says whether an alias is a family and a version. The pattern
// of the CRD takes any text after the first "@", but Karpenter's types end the
// process when they are asked for the family of an alias with a second one
// (amiFamilyFromAlias), and a version with spaces names no image.
func wellFormedAlias(alias string) bool {
	family, version, _ := strings.Cut(alias, "@")
	return aliasFamilies[family] != "" && version != "" && !strings.ContainsFunc(version, func(r rune) bool {
		return r == '@' || unicode.IsSpace(r) || !unicode.IsPrint(r)
	})
}

// aliasFamilies are the values of amiFamily by the family of an alias.
var aliasFamilies = map[string]string{
	"al2": "AL2", "al2023": "AL2023", "bottlerocket": "Bottlerocket",
	"windows2019": "Windows2019", "windows2022": "Windows2022", "windows2025": "Windows2025",
}

func checkAMIFamily(spec node, add adder) {
	family := spec.get("amiFamily")
	aliased := false
	for _, t := range spec.get("amiSelectorTerms").items() {
		if !t.has("alias") {
			continue
		}
		aliased = true
		name, _, _ := strings.Cut(t.get("alias").str(), "@")
		want := aliasFamilies[name]
		if family.exists() && want != "" && family.str() != want && family.str() != "Custom" {
			add(family.path, fmt.Sprintf("amiFamily %s does not fit the alias %s", family.str(), t.get("alias").str()),
				fmt.Sprintf("remove amiFamily, or set it to %s or Custom", want))
		}
	}
	if !aliased && !family.exists() {
		add(spec.path, "without an alias amiFamily is required", "add amiFamily: Custom if the image brings its own user data")
	}
}

// checkTerms applies the common rules of selector terms. The CRD refuses a
// field beside others only when every term is so; this does the same.
func checkTerms(list node, oneOf []string, alone map[string][]string, add adder) {
	terms := list.items()
	if list.exists() && len(terms) == 0 {
		add(list.path, "this list is empty", "add a term or remove the list")
	}
	for _, t := range terms {
		if !t.hasAny(oneOf...) {
			add(t.path, "this term selects nothing", "set one of "+strings.Join(oneOf, ", "))
		}
	}
	for _, field := range oneOf {
		others := alone[field]
		if len(others) > 0 && all(terms, func(t node) bool { return t.has(field) && t.hasAny(others...) }) {
			add(terms[0].at(field), fmt.Sprintf("%s cannot be combined with %s", field, strings.Join(others, ", ")), "keep it alone in its term")
			return
		}
	}
}

func checkBlockDevices(devices []node, list node, add adder) {
	if count(devices, func(d node) bool { return d.get("rootVolume").value == true }) > 1 {
		add(list.path, "more than one device has rootVolume", "set it on one device")
	}
	for _, d := range devices {
		ebs := d.get("ebs")
		checkVolumeSize(ebs.get("volumeSize"), add)
		if ebs.exists() && !ebs.hasAny("snapshotID", "volumeSize") {
			add(ebs.path, "neither snapshotID nor volumeSize is set", "set volumeSize, for example 100Gi")
		}
		if ebs.has("volumeInitializationRate") && ebs.get("snapshotID").str() == "" {
			add(ebs.at("volumeInitializationRate"), "volumeInitializationRate needs a snapshotID", "remove it: an empty volume is ready at once")
		}
	}
}

// checkVolumeSize holds that a volume has some size: the CRD's pattern also
// takes a unit without a number, which is zero.
func checkVolumeSize(n node, add adder) {
	if q, err := resources.ParseQuantity(n.text()); n.exists() && err == nil && q.Sign() <= 0 {
		add(n.path, fmt.Sprintf("a volume of size %q holds nothing", n.text()), "write a size such as 100Gi")
		return
	}
	checkQuantity(n, add)
}

func checkNetworkInterfaces(list node, add adder) {
	interfaces := list.items()
	if len(interfaces) == 0 {
		return
	}
	primary := func(n node) bool {
		return n.get("networkCardIndex").text() == "0" && n.get("deviceIndex").text() == "0" && n.get("interfaceType").str() == "interface"
	}
	if count(interfaces, primary) == 0 {
		add(list.path, "there is no primary interface", `add {networkCardIndex: 0, deviceIndex: 0, interfaceType: "interface"}`)
	}
	seen, efa := map[[2]string]bool{}, map[string]bool{}
	for _, n := range interfaces {
		card, device := n.get("networkCardIndex").text(), n.get("deviceIndex").text()
		if seen[[2]string{card, device}] {
			add(n.path, fmt.Sprintf("a second interface with networkCardIndex %s and deviceIndex %s", card, device), "give it another deviceIndex")
		}
		seen[[2]string{card, device}] = true
		if n.get("interfaceType").str() != "efa-only" {
			continue
		}
		if efa[card] {
			add(n.path, fmt.Sprintf("a second efa-only interface on network card %s", card), "a card takes one")
		}
		efa[card] = true
	}
}

func checkSmallStructs(spec node, add adder) {
	if ct := spec.get("connectionTracking"); ct.exists() && !ct.hasAny("tcpEstablishedTimeout", "udpStreamTimeout", "udpTimeout") {
		add(ct.path, "connectionTracking sets nothing", "set a timeout or remove it")
	}
	pg := spec.get("placementGroupSelector")
	switch {
	case !pg.exists():
	case pg.has("name") && pg.has("id"):
		add(pg.path, "name and id cannot both be set", "keep one of them")
	case !pg.hasAny("name", "id"):
		add(pg.path, "neither name nor id is set", "set one of them")
	}
}

func checkKubelet(k node, add adder) {
	high, okHigh := k.get("imageGCHighThresholdPercent").integer()
	low, okLow := k.get("imageGCLowThresholdPercent").integer()
	if okHigh && okLow && high <= low {
		add(k.at("imageGCHighThresholdPercent"), fmt.Sprintf("%d is not above imageGCLowThresholdPercent, which is %d", high, low), "")
	}
	for _, name := range []string{"kubeReserved", "systemReserved"} {
		for _, v := range k.get(name).fields() {
			checkQuantity(v, add)
		}
	}
	for _, name := range []string{"evictionHard", "evictionSoft"} {
		for _, v := range k.get(name).fields() {
			if !strings.HasSuffix(v.str(), "%") {
				checkQuantity(v, add)
			}
		}
	}
	soft, grace := k.get("evictionSoft"), k.get("evictionSoftGracePeriod")
	for signal, v := range soft.fields() {
		if !grace.has(signal) {
			add(v.path, fmt.Sprintf("%s has no grace period", signal), "add it to evictionSoftGracePeriod")
		}
	}
	for signal, v := range grace.fields() {
		checkDuration(v, add)
		if !soft.has(signal) {
			add(v.path, fmt.Sprintf("%s has a grace period but no threshold", signal), "add it to evictionSoft")
		}
	}
}
