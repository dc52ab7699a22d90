package scheduling

// This file and greedy.go use floats to steer the search. Each product must be
// written mul(a, b): without the conversion in it a compiler may fuse it with
// an addition, and then processors differ in the last bit.

func mul(a, b float64) float64 { return float64(a * b) }

// prices are what one unit of each resource is worth: the dual of the linear
// program that buys enough of every resource from fractions of nodes at least
// cost. demand and the columns' amounts are in the same dimensions; a resource
// that nobody asks for has no price. The sum over demand x price is a lower
// bound on the cost of any plan.
func resourcePrices(demand []float64, columns [][]float64, costs []float64) []float64 {
	rows := make([]int, 0, len(demand))
	for r, d := range demand {
		if d > 0 {
			rows = append(rows, r)
		}
	}
	lp := newSimplex(len(rows), costs)
	for _, col := range columns {
		a := make([]float64, len(rows))
		for i, r := range rows {
			a[i] = col[r] / demand[r]
		}
		lp.columns = append(lp.columns, a)
	}
	lp.solve()
	out := make([]float64, len(demand))
	for i, r := range rows {
		out[r] = max(lp.duals[i], 0) / demand[r]
	}
	return out
}

// simplex minimises cost x amount over columns so that each row, scaled to a
// demand of one, is covered. It is the revised method with a dense inverse:
// there are as many rows as resources, three to six.
type simplex struct {
	rows    int
	columns [][]float64
	costs   []float64
	basis   []int // column, or -1-r for the dear stand-in of row r
	inverse [][]float64
	value   []float64 // of the basic columns
	duals   []float64
	bigM    float64
}

const (
	simplexRounds    = 200
	simplexTolerance = 1e-9
)

func newSimplex(rows int, costs []float64) *simplex {
	lp := &simplex{rows: rows, costs: costs, bigM: 1, duals: make([]float64, rows)}
	for _, c := range costs {
		lp.bigM += c
	}
	lp.bigM = mul(lp.bigM, 1e6)
	for r := range rows {
		row := make([]float64, rows)
		row[r] = 1
		lp.inverse = append(lp.inverse, row)
		lp.basis = append(lp.basis, -1-r)
		lp.value = append(lp.value, 1)
	}
	return lp
}

func (lp *simplex) solve() {
	for range simplexRounds {
		lp.price()
		col, ok := lp.entering()
		if !ok || !lp.pivot(col) {
			return
		}
	}
}

func (lp *simplex) costOf(basic int) float64 {
	if basic < 0 {
		return lp.bigM
	}
	if basic >= len(lp.columns) {
		return 0 // surplus of a row
	}
	return lp.costs[basic]
}

// price computes the duals of the basis.
func (lp *simplex) price() {
	for c := range lp.rows {
		sum := 0.0
		for r := range lp.rows {
			sum += mul(lp.costOf(lp.basis[r]), lp.inverse[r][c])
		}
		lp.duals[c] = sum
	}
}

// entering is the column that lowers the cost most per unit; those past the
// real ones are the surpluses of the rows.
func (lp *simplex) entering() (int, bool) {
	best, least := -1, 0.0
	for j, a := range lp.columns {
		reduced := lp.costs[j]
		for r, x := range a {
			reduced -= mul(lp.duals[r], x)
		}
		if reduced < least-mul(simplexTolerance, lp.costs[j]+1) {
			best, least = j, reduced
		}
	}
	for r := range lp.rows {
		if lp.duals[r] < least-simplexTolerance {
			best, least = len(lp.columns)+r, lp.duals[r]
		}
	}
	return best, best >= 0
}

// pivot brings a column into the basis; false when nothing bounds it.
func (lp *simplex) pivot(col int) bool {
	direction := make([]float64, lp.rows)
	for r := range lp.rows {
		if col >= len(lp.columns) {
			direction[r] = -lp.inverse[r][col-len(lp.columns)]
			continue
		}
		for c, x := range lp.columns[col] {
			direction[r] += mul(lp.inverse[r][c], x)
		}
	}
	leave, least := -1, 0.0
	for r, d := range direction {
		if d <= simplexTolerance {
			continue
		}
		if ratio := lp.value[r] / d; leave < 0 || ratio < least {
			leave, least = r, ratio
		}
	}
	if leave < 0 {
		return false
	}
	lp.exchange(leave, col, direction)
	return true
}

func (lp *simplex) exchange(leave, col int, direction []float64) {
	for c := range lp.rows {
		lp.inverse[leave][c] /= direction[leave]
	}
	lp.value[leave] /= direction[leave]
	for r := range lp.rows {
		if r == leave {
			continue
		}
		for c := range lp.rows {
			lp.inverse[r][c] -= mul(direction[r], lp.inverse[leave][c])
		}
		lp.value[r] -= mul(direction[r], lp.value[leave])
	}
	lp.basis[leave] = col
}
