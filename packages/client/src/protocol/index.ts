export { isReconnectable } from './close-codes.js'
export { closestName, didYouMean } from './closest-name.js'
export { contains } from './containment.js'
export { decodeClientMessage, decodeClientPart, partOf } from './decode-client.js'
export type { MessagePart } from './decode-publish.js'
export {
  type CoreMessage,
  decodeCoreMessage,
  decodePresence,
  decodeServerMessage,
} from './decode-server.js'
export { DOCS_URL, REPOSITORY_URL } from './docs-url.js'
export {
  encodeAuth,
  encodeClientMessage,
  encodeHistory,
  encodeListen,
  encodePresence,
  encodePublish,
  encodeUnlisten,
} from './encode-client.js'
export { option } from './encode-field.js'
export { encodeJson } from './encode-json.js'
export { encodeMessageFrame, MessageFrame } from './encode-message.js'
export { encodeServerMessage, type TextServerMessage } from './encode-server.js'
export * from './errors.js'
export { isGroup, isId, isMemberName, isMessageId, isPosition } from './fields.js'
export { isKey, isPattern, validateKey, validatePattern } from './keys.js'
export * from './limits.js'
export { matches } from './matching.js'
export * from './messages.js'
export { decodeMeta, encodeMeta, type MessageMeta } from './meta.js'
export { formatOffset, parseOffset } from './offset.js'
export { assertOptions, type OptionKinds } from './option-kinds.js'
export { ownText } from './own-text.js'
export { formatFingerprint, formatPosition, type MessagePosition, parsePosition } from './position.js'
export { decodeObject, type RawMessage } from './raw-message.js'
export { refusalOf } from './refusal.js'
export {
  encodeRead,
  encodeStream,
  formatStreamPlace,
  parseStreamPlace,
  type StreamKind,
  type StreamPlace,
  type StreamStatus,
  type StreamSummary,
} from './streams.js'
export {
  decodeEnded,
  decodeReply,
  decodeTask,
  encodeReply,
  encodeRequest,
  membership,
  replyHeader,
  taskHeader,
} from './tasks.js'
