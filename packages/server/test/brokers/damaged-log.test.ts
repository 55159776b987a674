import { damagedLogSuite } from './damaged-log.js'
import { KINDS } from './kinds.js'

// The small form, for `npm test`: the whole suite has a file per broker.
damagedLogSuite(KINDS.redis, true)
damagedLogSuite(KINDS.nats, true)
