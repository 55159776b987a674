export type { ConnectionPresence, PresenceLimits } from './connection.js'
export { Presence, type PresenceStats } from './presence.js'
