# METADATA
# title: Time windows
# description: |
#   Lets what can wait happen in its hours only, in the time zone of whoever has
#   to be awake for it. Nodes for pending pods and what follows from
#   interruptions go on unless their kinds are listed.
#   Off unless data.policy.windows.enabled is true.
# schemas:
#   - input: schema.decision
package reeve.decision.time_windows

settings := data.policy.windows

default kinds := ["consolidate", "drift", "expire"]

kinds := settings.kinds

default zone := "UTC"

zone := settings.timeZone

default windows := []

windows := settings.allow

# METADATA
# title: It is outside of the time windows
# description: |
#   A decision of one of data.policy.windows.kinds is allowed while one of
#   data.policy.windows.allow is open. A window that ends before it starts lasts
#   until the next day; its days are those on which it starts. Empty nodes are
#   removed at any time when data.policy.windows.emptyAnytime is true.
# custom:
#   id: REEVE-WINDOW-001
#   severity: error
#   remediation: Wait for the next window, or change data.policy.windows.
deny contains finding if {
	input.kind in kinds
	closed(input.kind, input.now)
	not anytime
	finding := {
		"msg": sprintf("decisions of kind %s are made in the time windows only: %s", [input.kind, shown(input.kind)]),
		"path": ["policy", "windows"],
	}
}

anytime if {
	settings.emptyAnytime == true
	input.kind == "consolidate"
	input.proposal.method == "empty"
}

# closed says that the policy is on and no window for the kind is open.
closed(kind, now) if {
	settings.enabled == true
	not opened(kind, time.parse_rfc3339_ns(now))
}

opened(kind, ns) if {
	some window in windows
	serves(window, kind)
	covers(window, ns)
}

# A window without kinds is one for all of them.
serves(window, kind) if kind in object.get(window, "kinds", [kind])

# The part of a window on the day on which it starts.
covers(window, ns) if {
	on_day(window, time.weekday([ns, zone]))
	at := minute(ns)
	at >= begin(window)
	at < last_minute(window)
}

# The part of a window after midnight, on the day after the one it starts on.
covers(window, ns) if {
	overnight(window)
	on_day(window, before[time.weekday([ns, zone])])
	minute(ns) < end(window)
}

on_day(window, day) if substring(day, 0, 3) in object.get(window, "days", names)

names := ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]

before := {
	"Monday": "Sunday",
	"Tuesday": "Monday",
	"Wednesday": "Tuesday",
	"Thursday": "Wednesday",
	"Friday": "Thursday",
	"Saturday": "Friday",
	"Sunday": "Saturday",
}

overnight(window) if end(window) <= begin(window)

last_minute(window) := 24 * 60 if overnight(window)

last_minute(window) := end(window) if not overnight(window)

begin(window) := minutes(object.get(window, "start", "00:00"))

end(window) := minutes(object.get(window, "end", "24:00"))

minutes(text) := (to_number(hour) * 60) + to_number(minute_of_hour) if [hour, minute_of_hour] := split(text, ":")

minute(ns) := (hour * 60) + minute_of_hour if [hour, minute_of_hour, _] := time.clock([ns, zone])

# shown lists the windows for a kind.
shown(kind) := "there is none" if count(texts(kind)) == 0

shown(kind) := sprintf("%s, %s", [concat("; ", texts(kind)), zone]) if count(texts(kind)) > 0

texts(kind) := [text |
	some window in windows
	serves(window, kind)
	text := sprintf("%s %s-%s", [
		concat(" ", object.get(window, "days", ["every day"])),
		object.get(window, "start", "00:00"),
		object.get(window, "end", "24:00"),
	])
]
