// The same program once more, as on another machine: the two share the requests.
import './worker'
