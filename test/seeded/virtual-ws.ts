export { VirtualSocket as WebSocket } from './network.js'
