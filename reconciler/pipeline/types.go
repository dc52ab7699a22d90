package pipeline

import (
	"errors"
	"fmt"

	"github.com/reeve-project/reeve/reconciler/catalog"
)

// InstanceTypes are the instance types of an EC2NodeClass as the engine saw
// them in this world, with prices and offerings. It fails for a class that is
// not in the fleet or was not ready. The types must not be changed.
func (w *World) InstanceTypes(class string) ([]*catalog.InstanceType, error) {
	types, notReady, err := w.resolve()
	if err != nil {
		return nil, err
	}
	if t := types[class]; t != nil {
		return t.types, nil
	}
	if why := notReady[class]; why != "" {
		err = errors.New(why)
	} else {
		err = errors.New("it is not in the fleet")
	}
	return nil, fmt.Errorf("EC2NodeClass %s: %w", class, err)
}
