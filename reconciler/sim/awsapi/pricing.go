package awsapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/reeve-project/reeve/reconciler/catalog"
)

// maxProducts is how many products a page of the price list has at most.
const maxProducts = 100

// productQuery is the input of GetProducts.
type productQuery struct {
	ServiceCode   string
	FormatVersion string
	MaxResults    *int
	NextToken     string
	Filters       []struct{ Field, Type, Value string }
}

// servePricing answers GetProducts of the price list: the on-demand prices of
// the catalog for Linux.
func (e *Endpoint) servePricing(w http.ResponseWriter, r *http.Request) {
	if action := jsonAction(r, nil); action != "GetProducts" {
		failJSON(w, errorf("UnknownOperationException", "the simulated price list has no %s", action))
		return
	}
	body, err := io.ReadAll(r.Body)
	var q productQuery
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	if err != nil {
		failJSON(w, errorf("SerializationException", "%v", err))
		return
	}
	out, failure := e.products(q)
	if failure != nil {
		failJSON(w, failure)
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	_ = json.NewEncoder(w).Encode(out)
}

func (e *Endpoint) products(q productQuery) (any, *APIError) {
	if q.ServiceCode != "AmazonEC2" {
		return nil, errorf("NotFoundException", "Service %q is not found in the simulated price list", q.ServiceCode)
	}
	size := maxProducts
	if q.MaxResults != nil {
		size = *q.MaxResults
	}
	from, err := productOffset(q.NextToken)
	if err != nil || size < 1 || size > maxProducts {
		return nil, errorf("InvalidParameterException", "MaxResults %d or NextToken %q is invalid", size, q.NextToken)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	list := []string{}
	for _, t := range e.offered() {
		for _, attributes := range e.productAttributes(t) {
			ok, failure := wanted(q, attributes)
			if failure != nil {
				return nil, failure
			}
			if ok {
				list = append(list, e.product(t, attributes))
			}
		}
	}
	from = min(from, len(list))
	end := min(from+size, len(list))
	out := map[string]any{"FormatVersion": "aws_v1", "PriceList": list[from:end]}
	if end < len(list) {
		out["NextToken"] = base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(end)))
	}
	return out, nil
}

func productOffset(token string) (int, error) {
	if token == "" {
		return 0, nil
	}
	raw, err := base64.StdEncoding.DecodeString(token)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(string(raw))
	return max(n, 0), err
}

// productAttributes are those of the products of a type: none without a price.
// Bare metal is listed with dedicated tenancy, all else with shared.
func (e *Endpoint) productAttributes(t *catalog.Type) []map[string]string {
	product := func(tenancy, family string) map[string]string {
		return map[string]string{
			"instanceType": t.Name, "regionCode": e.Region(), "servicecode": "AmazonEC2", "tenancy": tenancy, "productFamily": family,
			"operatingSystem": "Linux", "preInstalledSw": "NA", "capacitystatus": "Used", "marketoption": "OnDemand", "vcpu": strconv.FormatInt(t.VCPUs, 10),
		}
	}
	if _, ok := e.options.Catalog.OnDemandPrice(t.Name); !ok {
		return nil
	}
	if t.Bare() {
		return []map[string]string{product("Dedicated", "Compute Instance (bare metal)")}
	}
	return []map[string]string{product("Shared", "Compute Instance")}
}

// wanted says whether the product passes all filters.
func wanted(q productQuery, attributes map[string]string) (bool, *APIError) {
	known := []string{"TERM_MATCH", "EQUALS"}
	for _, f := range q.Filters {
		if !slices.Contains(known, f.Type) {
			return false, errorf("InvalidParameterException", "the simulated price list has no filter of type %q", f.Type)
		}
		field := f.Field
		if field == "serviceCode" {
			field = "servicecode"
		}
		have, ok := attributes[field]
		if !ok {
			return false, errorf("InvalidParameterException", "the simulated price list has no field %q", f.Field)
		}
		if have != f.Value {
			return false, nil
		}
	}
	return true, nil
}

// product is an entry of the price list, which is JSON within JSON.
func (e *Endpoint) product(t *catalog.Type, attributes map[string]string) string {
	price, _ := e.options.Catalog.OnDemandPrice(t.Name)
	family := attributes["productFamily"]
	delete(attributes, "productFamily")
	sku := fmt.Sprintf("%s-%s", e.Region(), t.Name)
	dimension := map[string]any{
		"unit": "Hrs", "beginRange": "0", "endRange": "Inf", "description": fmt.Sprintf("$%s per On Demand Linux %s Instance Hour", price.Decimal(), t.Name),
		"pricePerUnit": map[string]string{"USD": price.Decimal()},
	}
	raw, err := json.Marshal(map[string]any{
		"serviceCode": "AmazonEC2",
		"product":     map[string]any{"sku": sku, "productFamily": family, "attributes": attributes},
		"terms": map[string]any{"OnDemand": map[string]any{sku + ".JRTCKXETXF": map[string]any{
			"sku": sku, "offerTermCode": "JRTCKXETXF", "priceDimensions": map[string]any{sku + ".JRTCKXETXF.6YS6EN2CT7": dimension},
		}}},
	})
	if err != nil {
		return "{}" // only strings are in it
	}
	return string(raw)
}
