import { openApiDocument } from '../openapi.js'
import type { OwnRoutes } from './handler.js'
import { config, patterns } from './operator.js'
import { publish, publishBatch } from './publish.js'
import { history } from './read.js'

export { type Call, type Handler, RawAnswer } from './handler.js'

/** One handler per route that is no feature's; a missing one does not compile. */
export const handlers: OwnRoutes = {
  publish,
  publishBatch,
  history,
  patterns,
  config,
  openapi: () => openApiDocument(),
}
