import type { Socket } from 'node:net'

const HEAD_END = '\r\n\r\n'

/**
 * Reads from a new connection until its first request head is complete. A connection that takes too long is destroyed.
 * @param done Gets all bytes that were read, once. Whoever takes the connection MUST do so within the call.
 */
export function readRequestHead(
  socket: Socket,
  { maxHeaderBytes, timeoutMs }: { readonly maxHeaderBytes: number; readonly timeoutMs: number },
  done: (read: Buffer | 'too large' | 'closed') => void,
): void {
  let read: Buffer | undefined
  const onData = (chunk: Buffer) => {
    const searchFrom = Math.max(0, (read?.length ?? 0) - HEAD_END.length + 1)
    read = read === undefined ? chunk : Buffer.concat([read, chunk])
    const end = read.indexOf(HEAD_END, searchFrom, 'latin1')
    if ((end < 0 ? read.length : end + HEAD_END.length) > maxHeaderBytes) finish('too large')
    else if (end >= 0) finish(read)
  }
  const onEnd = () => socket.destroy()
  const onClose = () => finish('closed')
  const onError = () => socket.destroy()
  const timer = setTimeout(() => socket.destroy(), timeoutMs)
  const finish = (result: Buffer | 'too large' | 'closed') => {
    clearTimeout(timer)
    socket.off('data', onData).off('end', onEnd).off('close', onClose)
    done(result)
    socket.off('error', onError)
  }
  socket.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onError)
}
