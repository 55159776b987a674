// What an adapter of your own is written against: `webmq-server/ports`.
export type * from './broker.js'
export { certificateIndexFor, certificateNames } from './certificate-names.js'
export { copyBytes, copyFrame } from './copy-bytes.js'
export { type HistoryOptions, type HistoryRule, HistoryRules, parseHistoryRule } from './history-rules.js'
export { assertMessageId } from './message-id.js'
export { formatPosition, parsePosition } from './position.js'
export type * from './transport.js'
export type { WorkMeter } from './work-meter.js'
