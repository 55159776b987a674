/** The systems, how a node of each is run, and the judge: for the benches of this repository. */
export { Node, type NodeProgram, webmqServer } from './playing/node.js'
export { count, type Wrong } from './targets/count.js'
export { addCounts, type Counts, noCounts } from './targets/counts.js'
export type { HeardEvent, Published } from './targets/record.js'
export { type NodeOptions, numberIn, post, type System, webSocketThrough } from './targets/system.js'
export { SYSTEMS } from './targets/systems.js'
