import { mesh } from './brokers.js'
import { joinsUnderFlood } from './joins.js'
import { randomSchedules } from './random-schedules.js'

randomSchedules(mesh)
joinsUnderFlood(mesh)
