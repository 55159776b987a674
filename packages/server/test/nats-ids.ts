/** Where the library of NATS takes its names from, for tests that repeat a run. */
export { nuid } from '@nats-io/transport-node'
