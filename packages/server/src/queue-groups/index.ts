export { ConnectionGroups, type ConnectionGroupsContext } from './connection.js'
export type {
  GroupMember,
  GroupMessage,
  Reply,
  ReplyError,
  RequestTicket,
  SlotKind,
  SlotName,
} from './group-message.js'
export { handingOver } from './grouped-broker.js'
export { LocalMember, MAX_REASON_CHARS } from './local-member.js'
export { type QueueGroupStats, QueueGroups } from './queue-groups.js'
export { errorReply, type TakenRequest } from './requests.js'
