export type { ConnectionPresence, PresenceLimits } from './connection.js'
export { Occupancy, type OccupancyStats } from './occupancy/occupancy.js'
export { Presence, type PresenceStats } from './presence.js'
