/** Facts that no measurement here can know. */
export interface Assumptions {
  /** Cores of a node: one runs JavaScript, the others write to sockets. */
  readonly nodeCores: number
  /** Most connections of a node, so that the loss of one is bearable. */
  readonly nodeConnections: number
  /** Cores of the machine of a broker. Redis uses one of them. */
  readonly brokerCores: number
  /** Share of a core or link that may be used, 0 to 1; the rest is for peaks. */
  readonly utilization: number
  /** Of each machine, in each direction. */
  readonly networkGbits: number
  /** `--history-partitions` of the nodes. */
  readonly historyPartitions: number
  /** Whether the connections of a key are kept on few nodes, by the balancer. */
  readonly isSharded: boolean
  /** Prices in one currency, for comparison. */
  readonly coreHourPrice: number
  readonly gibHourPrice: number
  /** Of traffic to clients. */
  readonly gibOutPrice: number
}

export const DEFAULT_ASSUMPTIONS: Assumptions = {
  nodeCores: 4,
  nodeConnections: 100_000,
  brokerCores: 8,
  utilization: 0.6,
  networkGbits: 10,
  historyPartitions: 1,
  isSharded: false,
  coreHourPrice: 0.04,
  gibHourPrice: 0.005,
  gibOutPrice: 0,
}

/** Kernel memory of a socket with its buffers, beside the memory of the process. */
export const KERNEL_BYTES_PER_CONNECTION = 3_800
/** The server's default `pingIntervalMs`: clients ping that often. */
export const PING_INTERVAL_S = 25
/** The server's default `historyMaxBytes`: a node's copy of the log. */
export const LOG_COPY_BYTES = 16 * 1024 * 1024
/** Ethernet, IP and TCP headers of a packet, per write; larger writes take several packets of `MAX_SEGMENT_BYTES`. */
export const PACKET_BYTES = 66
export const MAX_SEGMENT_BYTES = 1_448
