import { openApiDocument } from '../openapi.js'
import type { RouteName } from '../routes.js'
import type { Handler } from './handler.js'
import { config, connections, disconnect, info, patterns, revoke, user } from './operator.js'
import { publish, publishBatch } from './publish.js'
import { history, presence } from './read.js'
import { readStream, writeStream } from './streams.js'

export { type Call, type Handler, RawAnswer } from './handler.js'

/** One handler per route; a missing one does not compile. */
export const handlers: { readonly [Name in RouteName]: Handler<Name> } = {
  publish,
  publishBatch,
  history,
  writeStream,
  readStream,
  presence,
  connections,
  user,
  patterns,
  disconnect,
  revoke,
  info,
  config,
  openapi: () => openApiDocument(),
}
