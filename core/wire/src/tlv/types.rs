//! Assigned TYPE numbers (NDN packet specification, types.rst; NDNLPv2; NFD management protocol).

/// ImplicitSha256DigestComponent: 32 bytes.
pub const IMPLICIT_SHA256_DIGEST_COMPONENT: u32 = 1;
/// ParametersSha256DigestComponent: 32 bytes.
pub const PARAMETERS_SHA256_DIGEST_COMPONENT: u32 = 2;
/// Interest.
pub const INTEREST: u32 = 5;
/// Data.
pub const DATA: u32 = 6;
/// Name: components.
pub const NAME: u32 = 7;
/// GenericNameComponent: any bytes.
pub const GENERIC_NAME_COMPONENT: u32 = 8;
/// Nonce: 4 bytes.
pub const NONCE: u32 = 10;
/// InterestLifetime: milliseconds.
pub const INTEREST_LIFETIME: u32 = 12;
/// MustBeFresh: empty.
pub const MUST_BE_FRESH: u32 = 18;
/// MetaInfo.
pub const META_INFO: u32 = 20;
/// Content: any bytes.
pub const CONTENT: u32 = 21;
/// SignatureInfo of a Data.
pub const SIGNATURE_INFO: u32 = 22;
/// SignatureValue of a Data.
pub const SIGNATURE_VALUE: u32 = 23;
/// ContentType: number.
pub const CONTENT_TYPE: u32 = 24;
/// FreshnessPeriod: milliseconds.
pub const FRESHNESS_PERIOD: u32 = 25;
/// FinalBlockId: one name component.
pub const FINAL_BLOCK_ID: u32 = 26;
/// SignatureType: number.
pub const SIGNATURE_TYPE: u32 = 27;
/// KeyLocator: Name or KeyDigest.
pub const KEY_LOCATOR: u32 = 28;
/// KeyDigest: bytes.
pub const KEY_DIGEST: u32 = 29;
/// ForwardingHint: names.
pub const FORWARDING_HINT: u32 = 30;
/// Preference inside a Delegation of the old format: number. The same number as ForwardingHint.
pub const PREFERENCE: u32 = 30;
/// Delegation inside a ForwardingHint of the old format: Preference and Name.
pub const DELEGATION: u32 = 31;
/// KeywordNameComponent: any bytes.
pub const KEYWORD_NAME_COMPONENT: u32 = 32;
/// CanBePrefix: empty.
pub const CAN_BE_PREFIX: u32 = 33;
/// HopLimit: 1 byte.
pub const HOP_LIMIT: u32 = 34;
/// ApplicationParameters: any bytes.
pub const APPLICATION_PARAMETERS: u32 = 36;
/// SignatureNonce: at least 1 byte.
pub const SIGNATURE_NONCE: u32 = 38;
/// SignatureTime: milliseconds since the Unix epoch.
pub const SIGNATURE_TIME: u32 = 40;
/// SignatureSeqNum: number.
pub const SIGNATURE_SEQ_NUM: u32 = 42;
/// InterestSignatureInfo.
pub const INTEREST_SIGNATURE_INFO: u32 = 44;
/// InterestSignatureValue.
pub const INTEREST_SIGNATURE_VALUE: u32 = 46;
/// SegmentNameComponent: number.
pub const SEGMENT_NAME_COMPONENT: u32 = 50;
/// ByteOffsetNameComponent: number.
pub const BYTE_OFFSET_NAME_COMPONENT: u32 = 52;
/// VersionNameComponent: number.
pub const VERSION_NAME_COMPONENT: u32 = 54;
/// TimestampNameComponent: microseconds since the Unix epoch.
pub const TIMESTAMP_NAME_COMPONENT: u32 = 56;
/// SequenceNumNameComponent: number.
pub const SEQUENCE_NUM_NAME_COMPONENT: u32 = 58;
/// SafeBag (ndn-cxx key export).
pub const SAFE_BAG: u32 = 128;
/// EncryptedKey (ndn-cxx key export).
pub const ENCRYPTED_KEY: u32 = 129;
/// ValidityPeriod: NotBefore and NotAfter.
pub const VALIDITY_PERIOD: u32 = 253;
/// NotBefore: `YYYYMMDDThhmmss` UTC.
pub const NOT_BEFORE: u32 = 254;
/// NotAfter: `YYYYMMDDThhmmss` UTC.
pub const NOT_AFTER: u32 = 255;
/// AdditionalDescription: DescriptionEntry, repeated.
pub const ADDITIONAL_DESCRIPTION: u32 = 258;
/// DescriptionEntry: DescriptionKey and DescriptionValue.
pub const DESCRIPTION_ENTRY: u32 = 512;
/// DescriptionKey: text.
pub const DESCRIPTION_KEY: u32 = 513;
/// DescriptionValue: text.
pub const DESCRIPTION_VALUE: u32 = 514;

/// LpPacket.
pub const LP_PACKET: u32 = 100;
/// Fragment: a network-layer packet or a part of one.
pub const LP_FRAGMENT: u32 = 80;
/// Sequence: 8 bytes.
pub const LP_SEQUENCE: u32 = 81;
/// FragIndex: number.
pub const LP_FRAG_INDEX: u32 = 82;
/// FragCount: number.
pub const LP_FRAG_COUNT: u32 = 83;
/// PitToken: 1 to 32 bytes.
pub const LP_PIT_TOKEN: u32 = 98;
/// Nack: optional NackReason.
pub const LP_NACK: u32 = 800;
/// NackReason: number.
pub const LP_NACK_REASON: u32 = 801;
/// IncomingFaceId: number.
pub const LP_INCOMING_FACE_ID: u32 = 812;
/// NextHopFaceId: number.
pub const LP_NEXT_HOP_FACE_ID: u32 = 816;
/// CachePolicy: CachePolicyType.
pub const LP_CACHE_POLICY: u32 = 820;
/// CachePolicyType: number.
pub const LP_CACHE_POLICY_TYPE: u32 = 821;
/// CongestionMark: number.
pub const LP_CONGESTION_MARK: u32 = 832;
/// Ack: 8 bytes.
pub const LP_ACK: u32 = 836;
/// TxSequence: 8 bytes.
pub const LP_TX_SEQUENCE: u32 = 840;
/// NonDiscovery: empty.
pub const LP_NON_DISCOVERY: u32 = 844;
/// PrefixAnnouncement: one Data.
pub const LP_PREFIX_ANNOUNCEMENT: u32 = 848;
/// KnowsPitTokens: 1 byte. A field specific to Namehop, which NDNLPv2 does not assign and other implementations
/// ignore.
pub const LP_KNOWS_PIT_TOKENS: u32 = 952;
/// PathMtuProbe: 1 byte, 4 bytes, padding. Specific to Namehop, too.
pub const LP_PATH_MTU_PROBE: u32 = 956;

/// Numbers of the NFD management protocol. Some have different meanings in different modules, so the context
/// determines how they are decoded.
pub mod nfd {
    /// ControlResponse.
    pub const CONTROL_RESPONSE: u32 = 101;
    /// StatusCode: number.
    pub const STATUS_CODE: u32 = 102;
    /// StatusText: UTF-8.
    pub const STATUS_TEXT: u32 = 103;
    /// ControlParameters.
    pub const CONTROL_PARAMETERS: u32 = 104;
    /// FaceId: number.
    pub const FACE_ID: u32 = 105;
    /// Cost: number.
    pub const COST: u32 = 106;
    /// Strategy: one Name.
    pub const STRATEGY: u32 = 107;
    /// Flags: number.
    pub const FLAGS: u32 = 108;
    /// ExpirationPeriod: milliseconds.
    pub const EXPIRATION_PERIOD: u32 = 109;
    /// Origin: number.
    pub const ORIGIN: u32 = 111;
    /// Mask: number.
    pub const MASK: u32 = 112;
    /// Uri: UTF-8.
    pub const URI: u32 = 114;
    /// LocalUri: UTF-8.
    pub const LOCAL_URI: u32 = 129;
    /// Capacity: number.
    pub const CAPACITY: u32 = 131;
    /// Count: number.
    pub const COUNT: u32 = 132;
    /// FacePersistency: number.
    pub const FACE_PERSISTENCY: u32 = 133;
    /// BaseCongestionMarkingInterval: nanoseconds.
    pub const BASE_CONGESTION_MARKING_INTERVAL: u32 = 135;
    /// DefaultCongestionThreshold: bytes.
    pub const DEFAULT_CONGESTION_THRESHOLD: u32 = 136;
    /// Mtu: bytes.
    pub const MTU: u32 = 137;

    /// NfdVersion in the general status: text.
    pub const NFD_VERSION: u32 = 128;
    /// StartTimestamp in the general status: milliseconds.
    pub const START_TIMESTAMP: u32 = 129;
    /// CurrentTimestamp in the general status: milliseconds.
    pub const CURRENT_TIMESTAMP: u32 = 130;
    /// NNameTreeEntries in the general status.
    pub const N_NAME_TREE_ENTRIES: u32 = 131;
    /// NFibEntries in the general status.
    pub const N_FIB_ENTRIES: u32 = 132;
    /// NPitEntries in the general status.
    pub const N_PIT_ENTRIES: u32 = 133;
    /// NMeasurementsEntries in the general status.
    pub const N_MEASUREMENTS_ENTRIES: u32 = 134;
    /// NCsEntries in the general status and in CsInfo.
    pub const N_CS_ENTRIES: u32 = 135;
    /// NInInterests: counter.
    pub const N_IN_INTERESTS: u32 = 144;
    /// NInData: counter.
    pub const N_IN_DATA: u32 = 145;
    /// NOutInterests: counter.
    pub const N_OUT_INTERESTS: u32 = 146;
    /// NOutData: counter.
    pub const N_OUT_DATA: u32 = 147;
    /// NInBytes: counter.
    pub const N_IN_BYTES: u32 = 148;
    /// NOutBytes: counter.
    pub const N_OUT_BYTES: u32 = 149;
    /// NInNacks: counter.
    pub const N_IN_NACKS: u32 = 151;
    /// NOutNacks: counter.
    pub const N_OUT_NACKS: u32 = 152;
    /// NSatisfiedInterests: counter.
    pub const N_SATISFIED_INTERESTS: u32 = 153;
    /// NUnsatisfiedInterests: counter.
    pub const N_UNSATISFIED_INTERESTS: u32 = 154;

    /// FaceStatus in the face dataset.
    pub const FACE_STATUS: u32 = 128;
    /// ChannelStatus in the channel dataset.
    pub const CHANNEL_STATUS: u32 = 130;
    /// UriScheme in a face query: text.
    pub const URI_SCHEME: u32 = 131;
    /// FaceScope: number.
    pub const FACE_SCOPE: u32 = 132;
    /// LinkType: number.
    pub const LINK_TYPE: u32 = 134;
    /// FaceQueryFilter.
    pub const FACE_QUERY_FILTER: u32 = 150;
    /// FaceEventNotification.
    pub const FACE_EVENT_NOTIFICATION: u32 = 192;
    /// FaceEventKind: number.
    pub const FACE_EVENT_KIND: u32 = 193;

    /// FibEntry in the FIB dataset.
    pub const FIB_ENTRY: u32 = 128;
    /// NextHopRecord in a FibEntry.
    pub const NEXT_HOP_RECORD: u32 = 129;
    /// RibEntry in the RIB dataset.
    pub const RIB_ENTRY: u32 = 128;
    /// Route in a RibEntry.
    pub const ROUTE: u32 = 129;
    /// StrategyChoice in the strategy choice dataset.
    pub const STRATEGY_CHOICE: u32 = 128;
    /// CsInfo.
    pub const CS_INFO: u32 = 128;
    /// NHits in CsInfo.
    pub const N_HITS: u32 = 129;
    /// NMisses in CsInfo.
    pub const N_MISSES: u32 = 130;
}
