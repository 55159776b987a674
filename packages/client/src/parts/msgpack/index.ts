export { msgpack } from './codec.js'
