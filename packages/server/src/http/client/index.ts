export { WebMQError } from 'webmq-client/protocol'
export {
  type ApiBatchMessage,
  type ApiConnections,
  type ApiHistory,
  type ApiHistoryMessage,
  type ApiHistoryQuery,
  type ApiInfo,
  type ApiPublished,
  type DisconnectRequest,
  type RevokeRequest,
  WebMQApi,
  type WebMQApiOptions,
} from './webmq-api.js'
