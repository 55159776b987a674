export type { Attendance, PresenceLimits } from './attendance.js'
export { Presence, type PresenceStats } from './presence.js'
