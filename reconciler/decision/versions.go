package decision

// Versions of the libraries whose answers are part of a decision. A test holds
// them equal to go.mod.
const (
	OPAVersion = "v1.22.4"
	CUEVersion = "v0.17.1"
)

// CurrentEngine names the versions that this build computes decisions with.
func CurrentEngine() Engine {
	return Engine{Version: EngineVersion, OPA: OPAVersion, CUE: CUEVersion}
}
