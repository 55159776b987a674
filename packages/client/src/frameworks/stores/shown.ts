// The types that hooks, composables and stores of all frameworks show.
export type { Latest, LatestOptions } from './latest.js'
export type { Messages, MessagesOptions } from './messages.js'
export type { Present } from './presence.js'
export type { PublisherOptions, PublishTo, PublishToAny, PublishToKey } from './publish.js'
export type { ListedMessage, Sending } from './sending.js'
export type { StateTopicOptions } from './state.js'
export type { StreamOptions, StreamSnapshot } from './stream.js'
export type { TopicOptions } from './topic.js'
