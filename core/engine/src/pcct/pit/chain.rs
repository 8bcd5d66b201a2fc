//! Records of a PIT slot beyond the inline one: a chain of blocks, of which all but the last are full.

use namehop_table::Arena;

use crate::pcct::entry::NONE;
use crate::pcct::record::{BLOCK_RECORDS, INLINE_RECORDS, RecordBlock};

/// The error that there is no room for another record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// The arena of extension blocks for one kind of record.
pub(super) type Blocks<R> = Arena<RecordBlock<R>>;

/// Returns the block of the record with this index, and its index in the block. The record must not be inline.
pub(super) fn locate<R>(blocks: &Blocks<R>, first: u32, index: usize) -> (u32, usize) {
    let index = index - INLINE_RECORDS;
    let mut block = first;
    for _ in 0..index / BLOCK_RECORDS {
        block = blocks[block].next;
    }
    (block, index % BLOCK_RECORDS)
}

/// An iterator over the records of a slot.
pub(crate) struct Walk<'a, R> {
    /// The inline records, or the records of one block.
    piece: std::slice::Iter<'a, R>,
    blocks: &'a Blocks<R>,
    next: u32,
    /// Number of records after this piece.
    left: usize,
}

impl<'a, R> Walk<'a, R> {
    #[inline]
    pub(super) fn new(inline: &'a [R; INLINE_RECORDS], blocks: &'a Blocks<R>, first: u32, count: usize) -> Self {
        let here = count.min(INLINE_RECORDS);
        Walk { piece: inline[..here].iter(), blocks, next: first, left: count - here }
    }

    /// Nearly all slots have one record, so this is seldom called.
    #[cold]
    fn next_block(&mut self) -> Option<&'a R> {
        let block = &self.blocks[self.next];
        let here = self.left.min(BLOCK_RECORDS);
        self.piece = block.records[..here].iter();
        self.next = block.next;
        self.left -= here;
        self.piece.next()
    }
}

impl<'a, R> Iterator for Walk<'a, R> {
    type Item = &'a R;

    #[inline]
    fn next(&mut self) -> Option<&'a R> {
        match self.piece.next() {
            Some(record) => Some(record),
            None if self.left == 0 => None,
            None => self.next_block(),
        }
    }
}

/// Makes room for one more record after the first `count`, at most `most`. `first` is the head of the chain.
pub(super) fn extend<R: Copy + Default>(
    blocks: &mut Blocks<R>,
    first: &mut u32,
    count: usize,
    most: usize,
) -> Result<(), NoRoom> {
    if count >= most {
        return Err(NoRoom);
    }
    if count >= INLINE_RECORDS && (count - INLINE_RECORDS).is_multiple_of(BLOCK_RECORDS) {
        let block = blocks.allocate().ok_or(NoRoom)?;
        blocks[block].next = NONE;
        if count == INLINE_RECORDS {
            *first = block;
        } else {
            let (last, _) = locate(blocks, *first, count - 1);
            blocks[last].next = block;
        }
    }
    Ok(())
}

/// Frees the blocks that `count` records do not need.
pub(super) fn truncate<R>(blocks: &mut Blocks<R>, first: &mut u32, count: usize) {
    let mut spare = if count <= INLINE_RECORDS {
        std::mem::replace(first, NONE)
    } else {
        let (last, _) = locate(blocks, *first, count - 1);
        std::mem::replace(&mut blocks[last].next, NONE)
    };
    while spare != NONE {
        let next = blocks[spare].next;
        blocks.free(spare);
        spare = next;
    }
}

/// Keeps the records for which `keep` returns `true`, in order, and returns their number.
#[inline]
pub(super) fn retain<R: Copy>(
    inline: &mut [R; INLINE_RECORDS],
    blocks: &mut Blocks<R>,
    first: &mut u32,
    count: usize,
    mut keep: impl FnMut(&R) -> bool,
) -> usize {
    match count {
        0 => 0,
        1 => usize::from(keep(&inline[0])),
        _ => retain_of_many(inline, blocks, first, count, keep),
    }
}

#[cold]
fn retain_of_many<R: Copy>(
    inline: &mut [R; INLINE_RECORDS],
    blocks: &mut Blocks<R>,
    first: &mut u32,
    count: usize,
    mut keep: impl FnMut(&R) -> bool,
) -> usize {
    let (mut kept, mut read, mut write) = (0, RecordPosition::FIRST, RecordPosition::FIRST);
    for _ in 0..count {
        let record = *read.of(inline, blocks);
        if keep(&record) {
            if read != write {
                *write.of(inline, blocks) = record;
            }
            write = write.next(blocks, *first);
            kept += 1;
        }
        read = read.next(blocks, *first);
    }
    truncate(blocks, first, kept);
    kept
}

/// The position of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RecordPosition {
    Inline(usize),
    Block(u32, usize),
}

impl RecordPosition {
    const FIRST: RecordPosition = RecordPosition::Inline(0);

    fn of<'a, R>(self, inline: &'a mut [R; INLINE_RECORDS], blocks: &'a mut Blocks<R>) -> &'a mut R {
        match self {
            RecordPosition::Inline(index) => &mut inline[index],
            RecordPosition::Block(block, index) => &mut blocks[block].records[index],
        }
    }

    fn next<R>(self, blocks: &Blocks<R>, first: u32) -> RecordPosition {
        match self {
            RecordPosition::Inline(index) if index + 1 < INLINE_RECORDS => RecordPosition::Inline(index + 1),
            RecordPosition::Inline(_) => RecordPosition::Block(first, 0),
            RecordPosition::Block(block, index) if index + 1 < BLOCK_RECORDS => RecordPosition::Block(block, index + 1),
            RecordPosition::Block(block, _) => RecordPosition::Block(blocks[block].next, 0),
        }
    }
}
