import { nats } from './brokers.js'
import { joinsUnderFlood } from './joins.js'
import { randomSchedules } from './random-schedules.js'

randomSchedules(nats)
joinsUnderFlood(nats)
