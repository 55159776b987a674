import { redis } from './brokers.js'
import { joinsUnderFlood } from './joins.js'
import { randomSchedules } from './random-schedules.js'

randomSchedules(redis)
joinsUnderFlood(redis)
