import type { ServerMessage } from './messages.js'

/** The header line of a `task`, including its newline. Its fields must be valid. */
export function taskHeader({
  group,
  pattern,
  key,
  request,
  withinMs,
}: Omit<Extract<ServerMessage, { verb: 'task' }>, 'verb' | 'payload'>): string {
  const ticket = request === undefined ? '' : ` request=${request}`
  const within = withinMs === undefined ? '' : ` within=${withinMs}`
  return `task ${group} ${pattern} ${key}${ticket}${within}\n`
}

/** The header line of a `reply` of the server, including its newline. */
export function replyHeader({
  id,
  isError,
}: Omit<Extract<ServerMessage, { verb: 'reply' }>, 'verb' | 'payload'>): string {
  return `reply ${id}${isError ? ' error' : ''}\n`
}
