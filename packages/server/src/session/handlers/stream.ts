import { refusalOf } from 'webmq-client/protocol'
import type { Handler } from './handler.js'

export const stream: Handler<'stream'> = () => {
  throw refusalOf('E_UNSUPPORTED', { detail: 'stream' })
}

export const read: Handler<'read'> = () => {
  throw refusalOf('E_UNSUPPORTED', { detail: 'read' })
}
