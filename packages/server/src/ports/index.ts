// What an adapter of your own is written against: `webmq-server/ports`.

export { copyBytes } from '../base/copy-bytes.js'
export { decodeAttributes, encodeAttributes, MAX_ATTRIBUTES_BYTES, type MessageAttributes } from './attributes.js'
export type * from './broker.js'
export { certificateIndexFor, certificateNames } from './certificate-names.js'
export { copyFrame } from './copy-frame.js'
export { type HistoryOptions, type HistoryRule, HistoryRules, parseHistoryRule } from './history-rules.js'
export { assertMessageId } from './message-id.js'
export { formatPosition, parsePosition } from './position.js'
export { type RetainLimits, RetainRules } from './retain-rules.js'
export type * from './transport.js'
export type { WorkMeter } from './work-meter.js'
