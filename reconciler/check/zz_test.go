package check
import ("testing";"os";"context";"time")
func BenchmarkZZ(b *testing.B){
 for b.Loop(){
  r,err:=Run(context.Background(),Options{Source:"x",Files:os.DirFS("/tmp/perf/fleet"),Now:time.Date(2026,4,6,12,0,0,0,time.UTC)})
  if err!=nil{b.Fatal(err)}
  _=r
 }
}
