// Starts services and says when they run; its parent kills it then. Data folders go where TMPDIR says.
import { startNats, startRabbitmq, startRedis } from 'webmq-services'

const isPrivate = true
await Promise.all([startRedis({ isPrivate }), startNats({ isPrivate }), startRabbitmq({ isPrivate })])
