import type { ConnectionId, GroupId, UpgradeId } from '../../ports/transport.js'
import type { UwsWebSocket } from './module.js'

/** A message on its way; one object for all its receivers. */
export interface UwsFrame {
  readonly data: Uint8Array
  readonly isBinary: boolean
}

/** What is known about one accepted WebSocket. Only the parts of this transport write to it, each its own fields. */
export class UwsConnection {
  readonly id: ConnectionId
  readonly upgrade: UpgradeId
  /** Groups it is in, kept by `UwsGroups`. */
  readonly groups = new Set<GroupId>()
  /** Last multicast that reached it, kept by `UwsGroups`. */
  multicast = 0
  /** Frames of this turn, kept by `UwsOutbox`. */
  readonly frames: UwsFrame[] = []
  framesBytes = 0
  isDirty = false
  /** Whether it may get large frames, see `UwsOutbox`. */
  isSubscribed = false
  /** Ticks of `UwsKeepalive`: of the last sign of life, and of the ping that waits for one (0: none). */
  heardTick = 0
  pingTick = 0
  /** Set while open. uWebSockets.js throws when a closed one is touched, so whoever closes it takes it away first. */
  socket: UwsWebSocket<UwsConnection> | undefined

  constructor(id: ConnectionId, upgrade: UpgradeId) {
    this.id = id
    this.upgrade = upgrade
  }
}
