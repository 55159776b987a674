export { type EventStreamsOptions, eventStreams } from './event-streams.js'
