import { damagedLogSuite } from './damaged-log.js'
import { KINDS } from './kinds.js'

damagedLogSuite(KINDS.rabbitmq)
