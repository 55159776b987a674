import { KINDS } from './kinds.js'
import { lostEndSuite } from './lost-end.js'

// Clusters and RabbitMQ have files of their own, which take turns in `npm test`: each of their restarts takes many seconds.
lostEndSuite(KINDS.redis)
lostEndSuite(KINDS.nats)
