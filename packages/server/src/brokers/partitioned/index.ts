export { PartitionedBroker } from './broker.js'
export { namespaceOf } from './partition-of.js'
