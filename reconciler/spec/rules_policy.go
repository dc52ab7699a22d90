package spec

import (
	"fmt"
	"time"

	// A time zone that is right for one machine is right for all.
	_ "time/tzdata"

	"github.com/reeve-project/reeve/reconciler/resources"
)

// checkPolicy holds that settings of shipped policies are what their Rego can
// read. There a wrong one would be an error, which denies everything.
func checkPolicy(p node, add adder) {
	for _, d := range []node{
		p.get("expireAfter", "min"), p.get("expireAfter", "max"), p.get("coolDown", "consolidateAfter"),
	} {
		checkDuration(d, add)
	}
	checkTimeZone(p.get("windows", "timeZone"), add)
	ceilings := p.get("priceCeilings")
	for _, usd := range []node{
		ceilings.get("node"), ceilings.get("nodePool"), ceilings.get("fleet"), p.get("minimumSaving", "perHour"),
	} {
		checkUSD(usd, add)
	}
	for _, own := range ceilings.get("nodePools").fields() {
		checkUSD(own.get("node"), add)
		checkUSD(own.get("nodePool"), add)
	}
}

// checkTimeZone holds that a time zone that is set is in the IANA database.
func checkTimeZone(n node, add adder) {
	if !n.exists() {
		return
	}
	if _, err := time.LoadLocation(n.str()); err != nil || n.str() == "Local" {
		add(n.path, fmt.Sprintf("there is no time zone %q", n.str()), "name one of the IANA database, such as Europe/Berlin or UTC")
	}
}

// checkUSD holds that an amount of money is exact.
func checkUSD(n node, add adder) {
	if !n.exists() {
		return
	}
	if _, err := resources.ParsePrice(n.text()); err != nil {
		add(n.path, fmt.Sprintf("%s is not an amount of money: %v", n.text(), err), "write USD per hour with at most nine decimals, such as 0.5")
	}
}
