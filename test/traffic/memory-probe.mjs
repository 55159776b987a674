// Loaded into a node by NODE_OPTIONS=--import: every SIGUSR2 frees what nothing holds, and writes the bytes of the heap and of
// buffers that are left on standard error.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc')

process.on('SIGUSR2', () => {
  collect()
  const { heapUsed, external, rss } = process.memoryUsage()
  process.stderr.write(`memory ${heapUsed + external} ${rss}\n`)
})
